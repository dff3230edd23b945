package flow

import "encoding/json"

// Option is one setting of player flow, under the name that docs/spec/player-api.md#options gives it.
type Option struct {
	Section, Name string
	When          When
	Queue         bool // a queue may have its own value
	Note          string

	form form
}

// When tells to what a new value applies.
type When uint8

// The times.
const (
	AtOnce When = iota + 1
	// ForDeadlines takes effect at once, except for deadlines that are already set.
	ForDeadlines
	// ForNewParties does not affect existing parties.
	ForNewParties
	// ForNewGames does not affect existing game instances.
	ForNewGames
)

func (w When) String() string {
	return [...]string{"", "AT_ONCE", "NEW_DEADLINES", "NEW_PARTIES", "NEW_GAMES"}[w]
}

// form reads and writes the value of an option as JSON, its form in documents.
type form struct {
	want  string                                      // describes the valid values
	read  func(c *Config, text json.RawMessage) error // sets the option in c; on an error, such as a wrong type, c is unchanged
	write func(c *Config) any
	wrong func(c *Config) bool // reports whether the value in c is invalid
}

// Path returns the option's name prefixed with its section.
func (o *Option) Path() string { return o.Section + "." + o.Name }

// Want describes the valid values.
func (o *Option) Want() string { return o.form.want }

// Value returns the option's value in a configuration, as it appears in a document.
func (o *Option) Value(c *Config) any { return o.form.write(c) }

// Options returns all options in the order of docs/spec/player-api.md#options.
func Options() []Option { return options }

// option finds an option.
func option(section, name string) (*Option, bool) {
	for i := range options {
		if o := &options[i]; o.Section == section && o.Name == name {
			return o, true
		}
	}
	return nil, false
}

// queueOption finds an option for which a queue may have its own value. The names of these options are unique across
// sections.
func queueOption(name string) (*Option, bool) {
	for i := range options {
		if o := &options[i]; o.Queue && o.Name == name {
			return o, true
		}
	}
	return nil, false
}
