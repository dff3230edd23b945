// Package operator is the door of those who run an installation: it says what happened to a thing, and why. It changes
// nothing.
package operator

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/placement"
)

// Explanation is all that is known about one thing. The words in capitals are meant for programs and stay as they are;
// sentences are for people.
type Explanation struct {
	Kind   string `json:"kind"` // "fleet", "compute", "placement", "process", "game-session", "ticket", "player", "party" or "game-instance"
	ID     string `json:"id"`
	Status string `json:"status"`
	Why    string `json:"why"`            // why it is as it is, in a sentence
	Next   string `json:"next,omitempty"` // what to do about it, if anything has to be done
	Facts  []Fact `json:"facts"`

	// Places are, for a fleet, its locations; for a placement that waits, where it may go and where it may not; for one that ended without a game
	// session, how that was at its end.
	Places []Place `json:"places,omitempty"`
	// Search is, for a matchmaking ticket that waits, who could be matched with it and what stands against the others.
	Search *Search `json:"search,omitempty"`
	// Deadlines are, for a player, a party or a game instance, what happens by itself, the next first.
	Deadlines []Deadline `json:"deadlines,omitempty"`
	Timeline  []Moment   `json:"timeline"` // oldest first
}

// Deadline is something that happens by itself.
type Deadline struct {
	At   *time.Time `json:"at,omitempty"`
	Left string     `json:"left,omitempty"` // of a clock that stands still, in place of At
	Kind string     `json:"kind"`           // the setting it comes from, or what it is for
	Of   string     `json:"of"`
	Then string     `json:"then"`
}

// Fact is one thing that is known.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Place is a location of a fleet, or one that a placement considered.
type Place struct {
	Fleet    string `json:"fleet"`
	Location string `json:"location,omitempty"`
	Outcome  string `json:"outcome"` // what keeps placements from it, such as NO_FREE_PROCESS; FREE_PROCESS of a fleet's location that has one
	Free     int    `json:"free"`    // server processes that are free there now
	Detail   string `json:"detail,omitempty"`
}

// Moment is something that happened.
type Moment struct {
	At     time.Time `json:"at"`
	What   string    `json:"what"`
	Detail string    `json:"detail,omitempty"`
}

// fact notes what is known; nothing is noted about nothing.
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

// sorted brings the time line in order; of things that happened in one transaction the one noted first stays first.
func (x *Explanation) sorted() *Explanation {
	slices.SortStableFunc(x.Timeline, func(a, b Moment) int { return a.At.Compare(b.At) })
	return x
}

// placesInWords counts what keeps a placement from its places.
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
		words[i] = strconv.Itoa(c.n) + " " + outcomesInWords[c.outcome]
	}
	return strings.Join(words, ", ")
}

var outcomesInWords = map[string]string{
	placement.NoFreeProcess.String():  "without a free server process",
	placement.OverLatency.String():    "over the latency cap",
	placement.NotAllowed.String():     "not allowed by the queue's filter",
	placement.NotOverride.String():    "not in the priority override",
	placement.FleetNotActive.String(): "with a fleet that is not active",
	placement.NoSuchFleet.String():    "with a fleet or an alias that is gone",
	placement.NoLocation.String():     "with a fleet that has no location",
}

func clock(t domain.Time) string { return t.Std().Format(timeForm) }

// timeForm is how sentences name an instant.
const timeForm = "2006-01-02 15:04:05.000 MST"
