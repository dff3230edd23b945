package main

import (
	"cmp"
	"context"
	"encoding"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/musterhq/muster/internal/settings"
)

// variablePrefix starts the name of every variable that is a setting.
const variablePrefix = "MUSTER_"

// configFlag names the settings file, so the file cannot contain it.
const configFlag = "config"

// secretKeyFlag may name a variable (env:NAME) that contains the key itself and is no setting.
const secretKeyFlag = "secret-key-file"

// sources finds the value of each setting without a flag: in the environment, then in the settings file. The
// parser uses it for every command, so all commands see the same values.
type sources struct {
	env   environment
	args  []string // from the command line
	known []string

	fileName string
	file     map[string]fileValue
	given    map[string]string // setting -> which flag, variable or line it came from
	wrong    settings.Mistakes // values that cannot be parsed
}

func newSources(env environment) *sources {
	return &sources{env: env, known: settingNames(), fileName: env[variableName(configFlag)], given: map[string]string{}}
}

// settingNames returns the names of all settings in the order of the struct.
func settingNames() []string {
	var names []string
	for field := range reflect.TypeFor[settings.Settings]().Fields() {
		names = append(names, field.Tag.Get("name"))
	}
	return names
}

// showDefaults takes the defaults from the command line's struct before parsing, so that they have one source, and adds them to
// the help texts.
func showDefaults(parser *kong.Kong) error {
	return kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			if !flag.HasDefault && !flag.Target.IsZero() {
				flag.Default, flag.HasDefault = fmt.Sprint(flag.Target.Interface()), true
			}
			if flag.HasDefault {
				flag.Help += " Default: " + flag.Default + "."
			}
		}
		return next(nil)
	})
}

// prepare reads all settings for every command, so that an operator does not discover a mistake only at the next restart.
func (s *sources) prepare(command *kong.Context) (err error) {
	given := ""
	for _, flag := range command.Flags() {
		switch value, _ := command.FlagValue(flag).(string); flag.Name {
		case configFlag:
			s.fileName = cmp.Or(value, s.fileName)
		case secretKeyFlag:
			given = value
		}
	}
	if s.fileName != "" {
		if s.file, err = readSettingsFile(s.fileName, s.known); err != nil {
			return err
		}
	}
	secretKey, _ := strings.CutPrefix(cmp.Or(given, s.env[variableName(secretKeyFlag)], s.file[secretKeyFlag].text), "env:")
	for _, name := range slices.Sorted(maps.Keys(s.env)) {
		key, ok := strings.CutPrefix(name, variablePrefix)
		if key = settingOfVariable(key); ok && key != configFlag && !slices.Contains(s.known, key) && !ofAgent(name) && name != secretKey {
			return fmt.Errorf("variable %s is not a setting%s", name, didYouMean(key, s.known, variableName))
		}
	}
	return nil
}

// Validate is part of the parser's interface; prepare has checked everything.
func (s *sources) Validate(*kong.Application) error { return nil }

// Resolve returns the value of a setting without a flag as text, or nil to keep the default.
func (s *sources) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if !slices.Contains(s.known, flag.Name) {
		return nil, nil
	}
	text, where := s.env[variableName(flag.Name)], variableName(flag.Name)
	if _, ok := s.env[where]; !ok {
		value, ok := s.file[flag.Name]
		if !ok {
			return nil, nil
		}
		text, where = value.text, fmt.Sprintf("%s:%d", s.fileName, value.line)
	}
	if err := fits(flag, text); err != nil {
		s.wrong = append(s.wrong, settings.Mistake{Setting: flag.Name, At: where, Message: flag.Name + ": " + err.Error()})
		return nil, nil
	}
	s.given[flag.Name] = where
	return text, nil
}

// fits tries to parse the text as the parser will, so that an error can name the source of a bad value.
func fits(flag *kong.Flag, text string) error {
	target := reflect.New(flag.Target.Type())
	if unmarshaler, ok := target.Interface().(encoding.TextUnmarshaler); ok {
		return unmarshaler.UnmarshalText([]byte(text))
	}
	scan := kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: text})
	return flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, target.Elem())
}

// noteFlags records which settings were given as flags.
func (s *sources) noteFlags(command *kong.Context) {
	for _, path := range command.Path {
		if path.Flag != nil && !path.Resolved {
			s.given[path.Flag.Name] = "--" + path.Flag.Name
		}
	}
}

// result returns the values that could not be parsed, after everything else was read.
func (s *sources) result() error {
	if len(s.wrong) > 0 {
		return s.wrong
	}
	return nil
}

// again rereads all settings of serve, from the file and the variables, with the same flags.
func (s *sources) again() (settings.Loaded, error) {
	next := newSources(s.env)
	next.args = s.args
	loaded := settings.Loaded{From: next.of}
	parser, err := newParser(context.Background(), io.Discard, s.env, next)
	if err != nil {
		return loaded, err
	}
	command, err := parser.Parse(s.args)
	loaded.File = next.fileName
	if err = errors.Join(err, next.result()); err != nil {
		return loaded, err
	}
	next.noteFlags(command)
	loaded.Settings = parser.Model.Target.Addr().Interface().(*commandLine).Serve.Settings
	for _, name := range next.known {
		if x, said := next.file[name]; said {
			if at := fmt.Sprintf("%s:%d", next.fileName, x.line); next.of(name) != at {
				loaded.Overridden = append(loaded.Overridden, settings.Overridden{Setting: name, At: at, By: next.of(name)})
			}
		}
	}
	return loaded, nil
}

// of returns the source of a setting's value.
func (s *sources) of(setting string) string {
	if where, ok := s.given[setting]; ok {
		return where
	}
	return "default"
}

func variableName(setting string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
}

// settingOfVariable returns the setting of a variable, whose name is given without its prefix.
func settingOfVariable(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "_", "-"))
}
