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

// Loaded are settings as they were read, with where each value comes from.
type Loaded struct {
	Settings
	File       string                   // the settings file; empty: none
	From       func(name string) string // which flag, variable or line of the file a value comes from, or "default"; nil: not known
	Overridden []Overridden             // what the file says in vain
}

// Overridden is a setting in the file whose value a flag or variable hides.
type Overridden struct {
	Setting string `json:"setting"`
	At      string `json:"at"` // FILE:LINE
	By      string `json:"by"` // the flag or variable that wins
}

// Changed is a setting with another value than before, without secrets.
type Changed struct {
	Setting string `json:"setting"`
	Before  string `json:"before"`
	After   string `json:"after"`
	From    string `json:"from,omitempty"` // where the new value comes from
	Why     string `json:"why,omitempty"`  // it needs a restart, if that is not so in general
}

// ReadAgain is a file that a setting names and whose content has changed.
type ReadAgain struct {
	Setting string `json:"setting"`
	File    string `json:"file"`
}

// Reloaded is what a reload has done.
type Reloaded struct {
	File         string       `json:"file,omitempty"` // the settings file; absent: there is none
	Node         string       `json:"node,omitempty"` // of a cluster, whose other nodes have files of their own
	Changed      []Changed    `json:"changed"`        // in force
	ReadAgain    []ReadAgain  `json:"readAgain"`      // in force
	NeedsRestart []Changed    `json:"needsRestart"`   // read, and not in force
	Overridden   []Overridden `json:"overridden"`
}

// Mistake is a reason why settings cannot be taken.
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

// Mistakes are all that were found. It is an error.
type Mistakes []Mistake

func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i := range m {
		lines[i] = m[i].String()
	}
	return strings.Join(lines, "\n")
}

// mistakeMax bounds the text of one mistake, in bytes: a value may be of any length.
const mistakeMax = 2000

// MistakesOf takes an error of Check, or of a part that reads settings, apart. from says where values come from; nil: it is not known.
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

// parts are the errors that were joined.
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

// Reloads reports whether a running service takes a new value of a setting.
func Reloads(field reflect.StructField) bool { return field.Tag.Get("reload") == "yes" }

// Differences are the settings whose values differ, in the order of the fields.
func Differences(before, after Settings) (names []string) {
	b, a := reflect.ValueOf(before), reflect.ValueOf(after)
	for i := range b.NumField() {
		if !b.Field(i).Equal(a.Field(i)) {
			names = append(names, b.Type().Field(i).Tag.Get("name"))
		}
	}
	return names
}

// With returns the settings with some values of others.
func (s Settings) With(others Settings, take func(field reflect.StructField) bool) Settings {
	to, from := reflect.ValueOf(&s).Elem(), reflect.ValueOf(others)
	for i := range to.NumField() {
		if take(to.Type().Field(i)) {
			to.Field(i).Set(from.Field(i))
		}
	}
	return s
}

// Change describes the change of a setting. A value that is not shown in full, because it has a secret, differs although it may look the same.
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
