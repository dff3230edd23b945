package flow

import "encoding/json"

// Option is one setting of player flow, under the name that docs/spec/player-api.md#options gives it.
type Option struct {
	Section, Name string
	When          When
	Queue         bool // a queue may have its own
	Note          string

	form form
}

// When says what a new value counts for.
type When uint8

// The times.
const (
	AtOnce When = iota + 1
	// ForDeadlines is at once, too, but deadlines that run already stay as they are.
	ForDeadlines
	// ForNewParties leaves parties as they were made.
	ForNewParties
	// ForNewGames leaves game instances with the rules that they began with.
	ForNewGames
)

func (w When) String() string {
	return [...]string{"", "AT_ONCE", "NEW_DEADLINES", "NEW_PARTIES", "NEW_GAMES"}[w]
}

// form reads and writes the value of an option, which is JSON in documents.
type form struct {
	want  string                                      // which values make sense, in words
	read  func(c *Config, text json.RawMessage) error // of another type: an error; c is as it was then
	write func(c *Config) any
	wrong func(c *Config) bool // the value in c makes no sense
}

// Path is the name of the option with its section.
func (o *Option) Path() string { return o.Section + "." + o.Name }

// Want says which values make sense.
func (o *Option) Want() string { return o.form.want }

// Value is the option's value in a configuration, as it stands in a document.
func (o *Option) Value(c *Config) any { return o.form.write(c) }

// Options are all of them in the order of docs/spec/player-api.md#options.
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

// queueOption finds an option that a queue may have its own of. Their names are unlike each other in all sections.
func queueOption(name string) (*Option, bool) {
	for i := range options {
		if o := &options[i]; o.Queue && o.Name == name {
			return o, true
		}
	}
	return nil, false
}
