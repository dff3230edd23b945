package settings

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain/excerpt"
)

// Loaded are settings with the source of each value.
type Loaded struct {
	Settings
	File       string                   // the settings file; empty: none
	From       func(name string) string // the flag, variable or line of the file that a value comes from, or "default"; nil: unknown
	Overridden []Overridden             // values in the file without effect
}

// Overridden is a setting in the file that a flag or variable overrides.
type Overridden struct {
	Setting string `json:"setting"`
	At      string `json:"at"` // FILE:LINE
	By      string `json:"by"` // the flag or variable that wins
}

// Changed is a setting whose value has changed, without secrets.
type Changed struct {
	Setting string `json:"setting"`
	Before  string `json:"before"`
	After   string `json:"after"`
	From    string `json:"from,omitempty"` // where the new value comes from
	Why     string `json:"why,omitempty"`  // why it needs a restart, if this setting usually does not
}

// ReadAgain is a file that a setting names and that was read again because its content changed.
type ReadAgain struct {
	Setting string `json:"setting"`
	File    string `json:"file"`
}

// Reloaded is the result of a reload.
type Reloaded struct {
	File         string       `json:"file,omitempty"` // the settings file; absent: none
	Node         string       `json:"node,omitempty"` // id of this node in a cluster, whose other nodes have their own files
	Changed      []Changed    `json:"changed"`        // in force
	ReadAgain    []ReadAgain  `json:"readAgain"`      // in force
	NeedsRestart []Changed    `json:"needsRestart"`   // read but not in force
	Overridden   []Overridden `json:"overridden"`
}

// Mistake is a reason why settings are invalid.
type Mistake struct {
	Setting string `json:"setting,omitempty"` // absent: the file as a whole, or several settings
	At      string `json:"at,omitempty"`      // where the value comes from: FILE:LINE, a flag or a variable
	Message string `json:"message"`
}

func (m Mistake) String() string {
	if m.At == "" || strings.HasPrefix(m.Message, m.At) {
		return m.Message
	}
	return m.At + ": " + m.Message
}

// Mistakes are all mistakes that were found. It is an error.
type Mistakes []Mistake

func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i := range m {
		lines[i] = m[i].String()
	}
	return strings.Join(lines, "\n")
}

// mistakeMax limits the text of one mistake, in bytes: a value may have any length.
const mistakeMax = 2000

// MistakesOf splits an error from Check, or from a part that reads settings, into its mistakes. from returns the source of a value; nil: unknown.
func MistakesOf(err error, from func(name string) string) (all Mistakes) {
	if err == nil {
		return nil
	}
	if already, ok := errors.AsType[Mistakes](err); ok {
		return already
	}
	names := allNames()
	for _, each := range parts(err) {
		m := Mistake{Message: excerpt.Begin(each.Error(), mistakeMax)}
		first, _, _ := strings.Cut(m.Message, " ")
		if name := strings.TrimRight(first, ":,"); slices.Contains(names, name) {
			m.Setting = name
			if from != nil && from(name) != "default" {
				m.At = from(name)
			}
		}
		all = append(all, m)
	}
	return all
}

// parts returns the errors that were joined.
func parts(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // a wrapped list is one mistake
	if !ok {
		return []error{err}
	}
	for _, each := range joined.Unwrap() {
		all = append(all, parts(each)...)
	}
	return all
}

func allNames() (names []string) {
	for field := range reflect.TypeFor[Settings]().Fields() {
		names = append(names, field.Tag.Get("name"))
	}
	return names
}

// Reloads reports whether a reload applies a new value of a setting.
func Reloads(field reflect.StructField) bool { return field.Tag.Get("reload") == "yes" }

// Differences returns the settings whose values differ, in the order of the fields.
func Differences(before, after Settings) (names []string) {
	b, a := reflect.ValueOf(before), reflect.ValueOf(after)
	for i := range b.NumField() {
		if !b.Field(i).Equal(a.Field(i)) {
			names = append(names, b.Type().Field(i).Tag.Get("name"))
		}
	}
	return names
}

// With returns the settings with some values from others: those of the fields for which take returns true.
func (s Settings) With(others Settings, take func(field reflect.StructField) bool) Settings {
	to, from := reflect.ValueOf(&s).Elem(), reflect.ValueOf(others)
	for i := range to.NumField() {
		if take(to.Type().Field(i)) {
			to.Field(i).Set(from.Field(i))
		}
	}
	return s
}

// Change describes the change of a setting. If both values look the same because a secret is hidden, it marks the new one.
func Change(name string, before, after Settings, from func(string) string) Changed {
	c := Changed{Setting: name, Before: before.shown(name), After: after.shown(name)}
	if c.Before == c.After {
		c.Before, c.After = cmp.Or(c.Before, "…"), c.After+" (another secret)"
	}
	if from != nil {
		c.From = from(name)
	}
	return c
}

func (s Settings) shown(name string) string {
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("name") == name {
			return Shown(name, fmt.Sprint(v.Field(i).Interface()))
		}
	}
	return ""
}
