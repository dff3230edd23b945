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

// Option configures the service that Start starts.
type Option func(*options) error

type options struct {
	settings settings.Settings
	realTime bool
	level    slog.Level
}

// Setting sets a setting of `muster serve` by the name of its flag: Setting("reservation", "90s"). Start fails the test if the name does
// not exist or the value is out of range. `muster config` lists all settings.
func Setting(name, value string) Option {
	return func(o *options) error { return set(&o.settings, name, value) }
}

// Data uses a data directory of the test's choice and keeps it after the test.
func Data(dir string) Option { return Setting("data", dir) }

// Signed makes the service check signatures, as in production: calls need a key of [Server.Credentials] or [Server.AWSConfig].
func Signed() Option { return Setting("dev", "false") }

// RealTime uses the clock of the machine. Advance fails the test then.
func RealTime() Option {
	return func(o *options) error { o.realTime = true; return nil }
}

// LogLevel sets the lowest level that the service logs to the test's output. Default slog.LevelInfo.
func LogLevel(level slog.Level) Option {
	return func(o *options) error { o.level = level; return nil }
}

// set sets a setting by the name of its flag.
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
