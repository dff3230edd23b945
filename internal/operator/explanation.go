// Package operator is the door for operators: it explains the state of an object, its history and the reasons. Explanations change nothing.
package operator

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/placement"
)

// Explanation is everything known about one object. Words in capitals are for programs and do not change between releases; sentences are for
// people.
type Explanation struct {
	Kind   string `json:"kind"` // "fleet", "alias", "compute", "placement", "process", "game-session", "ticket", "player", "party" or "game-instance"
	ID     string `json:"id"`
	Status string `json:"status"`
	Why    string `json:"why"`            // reason for its state, as a sentence
	Next   string `json:"next,omitempty"` // next step for the operator, if any
	Facts  []Fact `json:"facts"`

	// Places are, for a fleet, its locations; for a waiting placement, where it may go and where not; for one that ended without a game session,
	// the same at its end.
	Places []Place `json:"places,omitempty"`
	// Search tells, for a waiting matchmaking ticket, which tickets could match it, and which rules reject the others.
	Search *Search `json:"search,omitempty"`
	// Deadlines are those of a player, a party or a game instance, the next one first.
	Deadlines []Deadline `json:"deadlines,omitempty"`
	Timeline  []Moment   `json:"timeline"` // oldest first

	nowhere string // why no place is open to a waiting placement
}

// Deadline is a moment at which something ends automatically.
type Deadline struct {
	At   *time.Time `json:"at,omitempty"`
	Left string     `json:"left,omitempty"` // instead of At, on a clock that stands still
	Kind string     `json:"kind"`           // the name of its setting, or its purpose
	Of   string     `json:"of"`
	Then string     `json:"then"`
}

// Fact is one known property.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Place is a location of a fleet, or one considered by a placement.
type Place struct {
	Fleet    string `json:"fleet"`
	Location string `json:"location,omitempty"`
	Outcome  string `json:"outcome"` // obstacle for placements, such as NO_FREE_PROCESS; FREE_PROCESS for a fleet's location that has a free process
	Free     int    `json:"free"`    // server processes that are free there now
	Detail   string `json:"detail,omitempty"`
}

// Moment is a past event.
type Moment struct {
	At     time.Time `json:"at"`
	What   string    `json:"what"`
	Detail string    `json:"detail,omitempty"`
}

// fact adds a fact, unless its value is empty.
func (x *Explanation) fact(name, value string) {
	if value != "" {
		x.Facts = append(x.Facts, Fact{name, value})
	}
}

func (x *Explanation) moment(at domain.Time, what, detail string) {
	if at != 0 {
		x.Timeline = append(x.Timeline, Moment{at.Std(), what, detail})
	}
}

func (x *Explanation) place(t *placement.Try, free int) {
	x.Places = append(x.Places, Place{Fleet: t.Fleet, Location: t.Location, Outcome: t.Outcome.String(), Free: free, Detail: t.Detail})
}

// latestFirst reverses the moments from an index on, which were added newest first.
func (x *Explanation) latestFirst(from int) { slices.Reverse(x.Timeline[from:]) }

// sorted sorts the time line; moments of one transaction keep their order.
func (x *Explanation) sorted() *Explanation {
	slices.SortStableFunc(x.Timeline, func(a, b Moment) int { return a.At.Compare(b.At) })
	return x
}

// placesInWords summarizes the obstacles at a placement's places.
func placesInWords(places []Place) string {
	counts := map[string]int{}
	for _, p := range places {
		counts[p.Outcome]++
	}
	type count struct {
		outcome string
		n       int
	}
	var all []count
	for outcome, n := range counts {
		all = append(all, count{outcome, n})
	}
	slices.SortFunc(all, func(a, b count) int { return cmp.Or(b.n-a.n, strings.Compare(a.outcome, b.outcome)) })
	words := make([]string, len(all))
	for i, c := range all {
		words[i] = strconv.Itoa(c.n) + " " + attention.OutcomesInWords[c.outcome]
	}
	return strings.Join(words, ", ")
}

func clock(t domain.Time) string { return t.Std().Format(timeForm) }

// timeForm is the format of instants in sentences.
const timeForm = "2006-01-02 15:04:05.000 MST"
