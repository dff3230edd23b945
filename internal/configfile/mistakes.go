package configfile

import (
	"errors"
	"fmt"
	"slices"
)

// Bounds of a list in a file.
const (
	valuesMax     = 64
	valueBytesMax = 512
)

// Mistakes are all those of a file, each with the place of the value.
type Mistakes []error

// Add notes a mistake at a place, such as rules[2].roles.
func (m *Mistakes) Add(at, format string, args ...any) {
	*m = append(*m, fmt.Errorf("%s: %w", at, fmt.Errorf(format, args...)))
}

// List notes what is wrong with a list: it wants 1 to 64 different values of 1 to 512 bytes.
func (m *Mistakes) List(at string, values []string) {
	if len(values) == 0 || len(values) > valuesMax {
		m.Add(at, "%d, want 1 to %d", len(values), valuesMax)
	}
	for n, value := range values {
		if value == "" || len(value) > valueBytesMax {
			m.Add(fmt.Sprintf("%s[%d]", at, n), "%d bytes, want 1 to %d", len(value), valueBytesMax)
		}
		if slices.Contains(values[:n], value) {
			m.Add(fmt.Sprintf("%s[%d]", at, n), "%.200q is given twice", value)
		}
	}
}

// Err returns all mistakes as one error; nil: there are none.
func (m Mistakes) Err() error { return errors.Join(m...) }
