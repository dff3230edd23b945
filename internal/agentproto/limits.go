package agentproto

import (
	"fmt"
	"math"
	"strings"

	"github.com/musterhq/muster/internal/domain/excerpt"
)

// Limits of messages and their members. Bytes are those of the decoded text.
const (
	// MessageMax is the largest message of either side. The largest are heartbeats of a host with ProcessesMax processes, and the end
	// of a process whose output is all escapes.
	MessageMax = 512 << 10

	DepthMax = 16 // nesting of objects and lists

	ProcessesMax   = 1000 // server processes of a host
	LaunchesMax    = 50   // entries of a runtime configuration
	LogPathsMax    = 100
	RequestIDBytes = 128
	IDBytes        = 1024 // of processes, game sessions, fleets and computes
	NameBytes      = 256  // versions, states, names
	PathBytes      = 4096
	LaunchBytes    = 1024 // of a launch path, and of its parameters
	URLBytes       = 8192
	TextBytes      = 1024      // reasons and errors for people
	LastOutputMax  = 64 << 10  // bytes of Exit.LastOutput
	OutputMax      = 64 << 10  // bytes of SendOutput.Output
	TailMax        = 256 << 10 // StartOutput.TailBytes
	LogBundleMax   = 66 << 20  // bytes of an archive with the logs of a game session
)

// FieldError says what is wrong with a member of a message.
type FieldError struct {
	Action string
	Field  string // "Exit.Signal", "ProcessList[3]"
	Value  string // cut to a length that fits in a log line
	Want   string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s: %s is %s; want %s", e.Action, e.Field, e.Value, e.Want)
}

// checker collects the first fault of a message.
type checker struct{ err *FieldError }

func (c *checker) wrong(field, value, want string) {
	if c.err == nil {
		c.err = &FieldError{Field: field, Value: value, Want: want}
	}
}

// text checks the length of a text; least is 0 or 1.
func (c *checker) text(field, value string, least, most int) {
	if len(value) < least || len(value) > most {
		c.wrong(field, shown(value), fmt.Sprintf("%d to %d bytes", least, most))
	}
}

func (c *checker) number(field string, value, least, most int64) {
	if value < least || value > most {
		c.wrong(field, fmt.Sprint(value), fmt.Sprintf("%d to %d", least, most))
	}
}

// amount checks what is measured and cannot be negative.
func (c *checker) amount(field string, value int64) { c.number(field, value, 0, math.MaxInt64) }

func (c *checker) share(field string, value float64) {
	if !(value >= 0 && value <= 1e9) {
		c.wrong(field, fmt.Sprint(value), "0 to 1e9")
	}
}

func (c *checker) many(field string, n, least, most int) {
	if n < least || n > most {
		c.wrong(field, fmt.Sprintf("a list of %d", n), fmt.Sprintf("%d to %d entries", least, most))
	}
}

func (c *checker) done() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// shown quotes a value, and cuts a long one.
func shown(value string) string {
	const most = 60
	if len(value) <= most {
		return fmt.Sprintf("%q", value)
	}
	return fmt.Sprintf("%q… (%d bytes)", excerpt.Begin(value, most), len(value))
}

// wrong is what a byte that is no text becomes on the wire. It is longer than the byte, so that a text is cut only after that.
const wrong = "\uFFFD"

// Text returns the beginning of a reason or error for people, as much as a message may have.
func Text(text string) string {
	return excerpt.Begin(strings.ToValidUTF8(text, wrong), TextBytes)
}

// LastOutput returns the end of what a process wrote, as much as a message may have.
func LastOutput(output []byte) string {
	return excerpt.End(strings.ToValidUTF8(string(output), wrong), LastOutputMax)
}
