package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// period is a duration as text, such as 10s, 15m or 1h30m.
func period(least, most time.Duration, at func(*Config) *time.Duration) form {
	return form{
		want: fmt.Sprintf("%s to %s", spellPeriod(least), spellPeriod(most)),
		read: func(c *Config, text json.RawMessage) error {
			d, err := readPeriod(text)
			if err == nil {
				*at(c) = d
			}
			return err
		},
		write: func(c *Config) any { return spellPeriod(*at(c)) },
		wrong: func(c *Config) bool { return *at(c) < least || *at(c) > most },
	}
}

var errPeriod = errors.New("want a time such as \"10s\", \"15m\" or \"1h30m\"")

func readPeriod(text json.RawMessage) (time.Duration, error) {
	var s string
	if json.Unmarshal(text, &s) != nil {
		return 0, errPeriod
	}
	d, err := time.ParseDuration(s)
	if err != nil || d%time.Millisecond != 0 { // the journal stores milliseconds
		return 0, errPeriod
	}
	return d, nil
}

// spellPeriod formats d without the trailing zero units of Duration.String.
func spellPeriod(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// number is an integer.
func number[T int | int32](least, most T, at func(*Config) *T) form {
	return form{
		want: fmt.Sprintf("%d to %d", least, most),
		read: func(c *Config, text json.RawMessage) error {
			var n T
			if isNull(text) || json.Unmarshal(text, &n) != nil {
				return errors.New("want a whole number")
			}
			*at(c) = n
			return nil
		},
		write: func(c *Config) any { return *at(c) },
		wrong: func(c *Config) bool { return *at(c) < least || *at(c) > most },
	}
}

// choice is one of several words; values are the corresponding values.
func choice[T comparable](at func(*Config) *T, values []T, words ...string) form {
	return form{
		want: strings.Join(words, ", "),
		read: func(c *Config, text json.RawMessage) error {
			var s string
			_ = json.Unmarshal(text, &s) // other JSON than a string matches none of the words
			i := slices.Index(words, s)
			if i < 0 {
				return fmt.Errorf("want one of %s", strings.Join(words, ", "))
			}
			*at(c) = values[i]
			return nil
		},
		write: func(c *Config) any {
			if i := slices.Index(values, *at(c)); i >= 0 {
				return words[i]
			}
			return fmt.Sprint(*at(c))
		},
		wrong: func(c *Config) bool { return !slices.Contains(values, *at(c)) },
	}
}

// either is a choice between two words; no stands for false.
func either(at func(*Config) *bool, no, yes string) form {
	return choice(at, []bool{false, true}, no, yes)
}

// yes is a boolean.
func yes(at func(*Config) *bool) form { return truth(at, false) }

// no is a boolean whose field stores the opposite.
func no(at func(*Config) *bool) form { return truth(at, true) }

func truth(at func(*Config) *bool, inverted bool) form {
	return form{
		want: "true or false",
		read: func(c *Config, text json.RawMessage) error {
			on, err := readTruth(text)
			if err == nil {
				*at(c) = on != inverted
			}
			return err
		},
		write: func(c *Config) any { return *at(c) != inverted },
		wrong: func(*Config) bool { return false },
	}
}

func readTruth(text json.RawMessage) (on bool, err error) {
	if isNull(text) || json.Unmarshal(text, &on) != nil {
		return false, errors.New("want true or false")
	}
	return on, nil
}

// toggle switches a period on and off. The period is remembered while it is off.
func toggle(inForce, set func(*Config) *time.Duration) form {
	return form{
		want: "true or false",
		read: func(c *Config, text json.RawMessage) error {
			on, err := readTruth(text)
			switch {
			case err != nil:
				return err
			case on:
				*inForce(c) = *set(c)
			default:
				*inForce(c) = 0
			}
			return nil
		},
		write: func(c *Config) any { return *inForce(c) != 0 },
		wrong: func(*Config) bool { return false },
	}
}

// toggled is the period that a toggle switches.
func toggled(least, most time.Duration, inForce, set func(*Config) *time.Duration) form {
	f := period(least, most, set)
	read := f.read
	f.read = func(c *Config, text json.RawMessage) error {
		if err := read(c, text); err != nil {
			return err
		}
		if *inForce(c) != 0 {
			*inForce(c) = *set(c)
		}
		return nil
	}
	f.write = func(c *Config) any {
		if d := *inForce(c); d != 0 {
			return spellPeriod(d)
		}
		return spellPeriod(*set(c))
	}
	f.wrong = func(c *Config) bool {
		d := *inForce(c)
		return *set(c) < least || *set(c) > most || d != 0 && (d < least || d > most)
	}
	return f
}

// steps is the list of locks on a scale of penalties, for the first offence first.
func steps(at func(*Config) *[]time.Duration) form {
	const stepsMax, longest = 20, 366 * 24 * time.Hour
	return form{
		want: fmt.Sprintf("1 to %d times of 0s to %s", stepsMax, spellPeriod(longest)),
		read: func(c *Config, text json.RawMessage) error {
			var parts []json.RawMessage
			if json.Unmarshal(text, &parts) != nil {
				return errors.New(`want a list of times such as ["0s", "1m", "5m"]`)
			}
			all := make([]time.Duration, len(parts))
			for i, part := range parts {
				d, err := readPeriod(part)
				if err != nil {
					return fmt.Errorf("element %d: %w", i, err)
				}
				all[i] = d
			}
			*at(c) = all
			return nil
		},
		write: func(c *Config) any {
			all := []string{}
			for _, d := range *at(c) {
				all = append(all, spellPeriod(d))
			}
			return all
		},
		wrong: func(c *Config) bool {
			n := len(*at(c))
			return n < 1 || n > stepsMax || slices.ContainsFunc(*at(c), func(d time.Duration) bool { return d < 0 || d > longest })
		},
	}
}

// texts is a list of texts.
func texts(at func(*Config) *[]string) form {
	const most, longest = 100, 64
	return form{
		want: fmt.Sprintf("at most %d strings of 1 to %d bytes", most, longest),
		read: func(c *Config, text json.RawMessage) error {
			var all []string
			if isNull(text) || json.Unmarshal(text, &all) != nil {
				return errors.New("want a list of strings")
			}
			if len(all) == 0 {
				all = nil
			}
			*at(c) = all
			return nil
		},
		write: func(c *Config) any { return append([]string{}, *at(c)...) },
		wrong: func(c *Config) bool {
			return len(*at(c)) > most || slices.ContainsFunc(*at(c), func(s string) bool { return s == "" || len(s) > longest })
		},
	}
}

// text is a text that may be empty.
func text(longest int, at func(*Config) *string) form {
	return form{
		want: fmt.Sprintf("a string of at most %d bytes", longest),
		read: func(c *Config, text json.RawMessage) error {
			var s string
			if isNull(text) || json.Unmarshal(text, &s) != nil {
				return errors.New("want a string")
			}
			*at(c) = s
			return nil
		},
		write: func(c *Config) any { return *at(c) },
		wrong: func(c *Config) bool { return len(*at(c)) > longest },
	}
}

func isNull(text json.RawMessage) bool { return string(text) == "null" }
