package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// Arrival is a ticket and the time of its arrival.
type Arrival struct {
	At      time.Duration // since the beginning
	Ticket  string
	Players []Player
	Leaves  time.Duration // since the beginning: when its players give up unless the ticket was matched; 0: they wait until it times out
}

// Player is one of a ticket's players.
type Player struct {
	ID         string
	Attributes []ruleset.NamedValue
	Latencies  []matcher.Latency // by region
}

// inOrder sorts arrivals by time, and keeps the order of simultaneous ones.
func inOrder(arrivals []Arrival) {
	slices.SortStableFunc(arrivals, func(a, b Arrival) int { return cmp.Compare(a.At, b.At) })
}

// Fits returns an error for the first arrival with an attribute of another kind than the rule set declares.
func Fits(rules *ruleset.RuleSet, arrivals []Arrival) error {
	for i := range arrivals {
		for j := range arrivals[i].Players {
			p := &arrivals[i].Players[j]
			if _, err := rules.Player(p.Attributes); err != nil {
				return fmt.Errorf("ticket %s: player %s: %w", arrivals[i].Ticket, p.ID, err)
			}
		}
	}
	return nil
}
