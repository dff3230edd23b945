package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/musterhq/muster/internal/audit"
)

// With these tags of flags, the parser refuses flags that a command would ignore. Both contain names of other flags, separated by commas. Only flags on the
// command line count: a setting in the environment or the settings file is for all commands, and is no mistake where a command does not use it.
const (
	insteadTag = "instead" // a command with this flag ignores these
	withTag    = "with"    // without this other flag, the command ignores the flag
)

// checkGiven refuses flags that have no effect with others, reasons that the audit log does not take, and values that are surely mistakes: empty texts, for example from an unset variable of a script,
// and negative numbers and times. Settings may be empty, to override other sources.
func (s *sources) checkGiven(command *kong.Context) error {
	given := map[string]string{} // flag -> its text
	for _, path := range command.Path {
		if path.Flag != nil && !path.Resolved {
			given[path.Flag.Name] = flagText(path.Flag)
		}
	}
	for _, path := range command.Path {
		switch {
		case path.Positional != nil && isEmpty(path.Positional.Target):
			return fmt.Errorf("%s: want a value that is not empty", path.Positional.Summary())
		case path.Flag == nil || path.Resolved:
			continue
		}
		flag := path.Flag
		for _, other := range flagsOf(flag, insteadTag) {
			if text, ok := given[other]; ok {
				return fmt.Errorf("%s and %s: the command would ignore the second; leave one of them out", flagText(flag), text)
			}
		}
		for _, other := range flagsOf(flag, withTag) {
			if _, ok := given[other]; !ok {
				return fmt.Errorf("%s: the command would ignore it without --%s", flagText(flag), other)
			}
		}
		if flag.Name == "reason" { // before the command changes anything
			if err := audit.CheckReason(flag.Target.String()); err != nil {
				return err
			}
		}
		switch {
		case isEmpty(flag.Target) && (!slices.Contains(s.known, flag.Name) || flag.Name == "data"):
			return fmt.Errorf("%s: want a value that is not empty, or leave the flag out", flagText(flag))
		case isNegative(flag.Target) && !slices.Contains(s.known, flag.Name): // settings have checks of their own
			return fmt.Errorf("%s: want a value that is not negative", flagText(flag))
		}
	}
	return nil
}

func flagsOf(flag *kong.Flag, tag string) []string {
	return strings.FieldsFunc(flag.Tag.Get(tag), func(r rune) bool { return r == ',' })
}

// flagText returns the flag as it was given.
func flagText(flag *kong.Flag) string {
	switch x := flag.Target; {
	case x.Kind() == reflect.Bool:
		return "--" + flag.Name
	case x.Kind() == reflect.String || x.Kind() == reflect.Slice:
		return fmt.Sprintf("--%s %q", flag.Name, x.Interface())
	default:
		return fmt.Sprintf("--%s %v", flag.Name, x.Interface())
	}
}

// isEmpty reports whether a value is an empty text or a list that contains one.
func isEmpty(x reflect.Value) bool {
	switch x.Kind() {
	case reflect.String:
		return x.Len() == 0
	case reflect.Slice:
		for i := range x.Len() {
			if isEmpty(x.Index(i)) {
				return true
			}
		}
		return x.Len() == 0
	}
	return false
}

func isNegative(x reflect.Value) bool {
	return x.CanInt() && x.Int() < 0 || x.CanFloat() && x.Float() < 0
}
