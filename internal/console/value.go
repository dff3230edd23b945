package console

import (
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
)

// value is the content of a cell: a column of a row of a list.
type value struct {
	Text  string // for people
	Link  string // to the page about it; empty: there is none
	Kind  valueKind
	Lines []string
	At    domain.Time

	whole  string // exported instead of a shortened Text
	number int64
}

// valueKind says how a value is shown and exported.
type valueKind string

const (
	plainText  valueKind = ""
	stateText  valueKind = "state"
	codeText   valueKind = "code"
	numberText valueKind = "number"
	timeText   valueKind = "time"
	linesText  valueKind = "lines"
)

func words(text string) value { return value{Text: text} }

func linked(text, path string) value {
	if text == "" {
		return value{}
	}
	return value{Text: text, Link: Prefix + "/" + path}
}

func shortened(text, whole, path string) value {
	return value{Text: text, Link: Prefix + "/" + path, whole: whole}
}

func state(text string) value { return value{Text: text, Kind: stateText} }

func code(text string) value { return value{Text: text, Kind: codeText} }

func instant(at domain.Time) value { return value{At: at, Kind: timeText} }

func several(lines []string) value { return value{Lines: lines, Kind: linesText} }

func number[N int | int32 | int64 | uint16 | uint64](n N) value {
	return value{Text: strconv.FormatInt(int64(n), 10), Kind: numberText, number: int64(n)} // #nosec G115 -- counts, far below 2^63
}

// exportedTime is the format of instants in exports, in UTC.
const exportedTime = "2006-01-02T15:04:05.000Z"

// data returns the value for an export as JSON.
func (v *value) data() any {
	switch v.Kind {
	case numberText:
		return v.number
	case timeText:
		if v.At == 0 {
			return nil
		}
		return v.At.Std().UTC().Format(exportedTime)
	case linesText:
		return append([]string{}, v.Lines...)
	}
	if v.whole != "" {
		return v.whole
	}
	return v.Text
}

// cell returns the value for an export as CSV. Players and game servers choose some texts, which spreadsheets must not take as formulas.
func (v *value) cell() string {
	switch data := v.data().(type) {
	case nil:
		return ""
	case int64:
		return v.Text
	case []string:
		return harmless(strings.Join(data, "\n"))
	case string:
		return harmless(data)
	}
	panic("console: a value of no known kind")
}

// harmless puts an apostrophe before a text that spreadsheets would evaluate. Source: OWASP, "CSV Injection", which lists these initial characters
// and their full-width forms.
func harmless(text string) string {
	if strings.IndexAny(strings.TrimLeft(text, " \u00a0"), "=+-@\t\r\n＝＋－＠") == 0 {
		return "'" + text
	}
	return text
}

// lasting returns a duration in readable form.
func lasting(d time.Duration) value { return words(d.String()) }

// moment returns an instant of the wall clock; a zero time is none.
func moment(at time.Time) value {
	if at.IsZero() {
		return instant(0)
	}
	return instant(domain.TimeOf(at))
}
