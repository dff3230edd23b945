package mustertest

import (
	"encoding"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/settings"
)

// Option changes what Start starts.
type Option func(*options) error

type options struct {
	settings settings.Settings
	realTime bool
	level    slog.Level
}

// Setting sets one of the settings of `muster serve` by its name: Setting("reservation", "90s").
func Setting(name, value string) Option {
	return func(o *options) error { return set(&o.settings, name, value) }
}

// Data keeps everything in a directory of the test's choice, which outlives it.
func Data(dir string) Option { return Setting("data", dir) }

// Signed refuses what is not signed with a key of [Server.Credentials], as a service outside development does.
func Signed() Option { return Setting("dev", "false") }

// RealTime takes the clock of the machine. Advance is refused then.
func RealTime() Option {
	return func(o *options) error { o.realTime = true; return nil }
}

// LogLevel chooses what the service logs to the test's output: everything from slog.LevelInfo on if not set.
func LogLevel(level slog.Level) Option {
	return func(o *options) error { o.level = level; return nil }
}

// set finds a setting by the name that its flag has.
func set(s *settings.Settings, name, text string) error {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("name") != name {
			continue
		}
		if err := setField(v.Field(i), text); err != nil {
			return fmt.Errorf("setting %s: %w", name, err)
		}
		return nil
	}
	return fmt.Errorf("there is no setting %q; `muster config` lists them", name)
}

func setField(v reflect.Value, text string) error {
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch v.Interface().(type) {
	case string:
		v.SetString(text)
	case bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q: want true or false", text)
		}
		v.SetBool(b)
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q: want a time such as 90s", text)
		}
		v.SetInt(int64(d))
	default:
		if !v.CanInt() {
			return fmt.Errorf("a %s cannot be set from text", v.Type())
		}
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("%q: want a whole number", text)
		}
		v.SetInt(n)
	}
	return nil
}
