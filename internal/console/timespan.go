package console

import (
	"net/url"
	"slices"

	"github.com/musterhq/muster/internal/domain"
)

// timespan is how far back graphs reach, and how many minutes each point covers. No graph has more than 460 points.
type timespan struct {
	Name    string // in URLs
	Text    string
	minutes int64
	step    int64  // minutes
	Each    string // step, in readable form
}

// timespans are the choices. Package series keeps minutes for 15 days and hours for 455 days.
var timespans = []timespan{
	{"1h", "1 hour", 60, 1, "minute"},
	{"6h", "6 hours", 6 * 60, 1, "minute"},
	{"1d", "1 day", 24 * 60, 5, "5 minutes"},
	{"7d", "7 days", 7 * 24 * 60, 60, "hour"},
	{"15d", "15 days", 15 * 24 * 60, 60, "hour"},
	{"455d", "455 days", 455 * 24 * 60, 24 * 60, "day (UTC)"},
}

// timespanOf returns the timespan that a query names; 6 hours if it names none.
func timespanOf(query url.Values) (timespan, error) {
	name := query.Get("range")
	if name == "" {
		name = "6h"
	}
	i := slices.IndexFunc(timespans, func(s timespan) bool { return s.Name == name })
	if i < 0 {
		return timespan{}, domain.Refuse(domain.Invalid, "range is %.20q; want 1h, 6h, 1d, 7d, 15d or 455d.", name)
	}
	return timespans[i], nil
}

// window returns the first minute and the minute after the last one of a timespan that ends with the current minute, and the number of steps between
// them. Steps start at multiples of their length, so that all pages divide time in the same way.
func (s timespan) window(now int64) (from, to int64, steps int) {
	last := now - now%s.step
	if s.step == 1 {
		last-- // the current minute has no samples before it is over
	}
	from = max(0, last-s.minutes+s.step)
	return from, last + s.step, int((last + s.step - from) / s.step)
}

// hours reports whether the graphs read hours instead of minutes.
func (s timespan) hours() bool { return s.step >= 60 }
