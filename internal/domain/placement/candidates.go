package placement

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
)

// Destination is a queue's destination in its current resolution.
type Destination struct {
	Index     int
	Fleet     string
	Cost      float64 // per hour
	Locations []string
	Problem   Outcome // why it cannot be used; 0 if it can
	Detail    string
	Spare     bool // the old fleet of a rollout when the turn is the new fleet's: it comes second wherever the two are equal
}

// Candidate is a place that a placement may use now.
type Candidate struct {
	Place
	Destination int
	latency     float64 // average over the players; infinite if no player measured it
	cost        float64
	location    int // index in the location order
	wanted      int // index in the locations preferred by this placement
	spare       bool
}

// Cap returns the latency cap for a placement that has waited this long, 0 for none, and when the next one applies, 0 for never.
func (q *Queue) Cap(waited time.Duration) (limit int32, until time.Duration) {
	policies := slices.SortedFunc(slices.Values(q.LatencyPolicies), func(a, b LatencyPolicy) int { return cmp.Compare(a.Cap, b.Cap) })
	end := time.Duration(0)
	for _, p := range policies {
		if p.Duration == 0 {
			return p.Cap, 0
		}
		if end += p.Duration; waited < end {
			return p.Cap, end
		}
	}
	return 0, 0
}

// Candidates returns the places that p may use now, best first, and the reason for each other place.
//
// Source: docs/spec/gamelift-api.md#choosing. The filter comes first. The cap then excludes a location if any player's latency exceeds
// it; a missing value does not exceed it. The criteria order the rest.
func (q *Queue) Candidates(p *Placement, destinations []Destination, now domain.Time) (best []Candidate, passed []Try) {
	pass := func(d Destination, location string, o Outcome, detail string) {
		passed = append(passed, Try{At: now, Fleet: d.Fleet, Location: location, Outcome: o, Detail: detail})
	}
	limit := int32(0)
	if len(p.Latencies) > 0 {
		limit, _ = q.Cap(now.Sub(p.Start))
	}
	measured := p.measured()
	for _, d := range destinations {
		if d.Problem != 0 {
			pass(d, "", d.Problem, d.Detail)
			continue
		}
		for _, location := range d.Locations {
			latency, worst := measured[location].latency()
			switch {
			case len(q.AllowedLocations) > 0 && !slices.Contains(q.AllowedLocations, location):
				pass(d, location, NotAllowed, "not one of the queue's allowed locations")
			case p.Override != nil && p.onlyOverride() && !slices.Contains(p.Override.Locations, location):
				pass(d, location, NotOverride, "not one of the locations of the priority override")
			case limit > 0 && worst > float32(limit):
				pass(d, location, OverLatency, fmt.Sprintf("a player has %g ms; the cap is %d ms now", worst, limit))
			default:
				best = append(best, Candidate{Place{d.Fleet, location}, d.Index, latency, d.Cost, q.locationOrder(p, location), p.wantedOrder(location), d.Spare})
			}
		}
	}
	order := q.criteria(p)
	slices.SortStableFunc(best, func(a, b Candidate) int {
		if c := cmp.Compare(a.wanted, b.wanted); c != 0 {
			return c
		}
		for _, by := range order {
			c := 0
			switch by {
			case ByLatency:
				c = cmp.Compare(a.latency, b.latency)
			case ByCost:
				c = cmp.Compare(a.cost, b.cost)
			case ByDestination:
				c = cmp.Compare(a.Destination, b.Destination)
			case ByLocation:
				c = cmp.Or(cmp.Compare(a.location, b.location), cmp.Compare(a.Location, b.Location))
			}
			if c != 0 {
				return c
			}
		}
		if a.spare != b.spare {
			if b.spare {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Fleet, b.Fleet)
	})
	return best, passed
}

// onlyOverride reports whether only the locations of the override are allowed: always with the strategy NONE, else in the first pass.
func (p *Placement) onlyOverride() bool { return p.Override.Only || !p.PassedOnce }

// criteria returns the complete order: the queue's criteria, followed by the others in their default order.
func (q *Queue) criteria(p *Placement) []Criterion {
	order := slices.Clone(q.PriorityOrder)
	for _, c := range []Criterion{ByLatency, ByCost, ByDestination, ByLocation} {
		if !slices.Contains(order, c) {
			order = append(order, c)
		}
	}
	if len(p.Latencies) == 0 {
		order = slices.DeleteFunc(order, func(c Criterion) bool { return c == ByLatency })
	}
	return order
}

// locationOrder returns a location's index in the order of the override or the queue; unlisted ones come last.
func (q *Queue) locationOrder(p *Placement, location string) int {
	order := q.LocationOrder
	if p.Override != nil {
		if i := slices.Index(p.Override.Locations, location); i >= 0 {
			return i - len(p.Override.Locations) // before all locations of the queue
		}
	}
	if i := slices.Index(order, location); i >= 0 {
		return i
	}
	return len(order)
}

// wantedOrder returns a location's index among those preferred by the placement; all others come last.
func (p *Placement) wantedOrder(location string) int {
	if i := slices.Index(p.Regions, location); i >= 0 {
		return i
	}
	return len(p.Regions)
}

// measurements has what the players measured for one location.
type measurements struct {
	sum   float64
	n     int
	worst float32
}

// measured returns the measurements of all locations. It reads the latencies once: a match of 200 players has thousands of them, and a queue hundreds
// of places.
func (p *Placement) measured() map[string]measurements {
	if len(p.Latencies) == 0 {
		return nil
	}
	all := map[string]measurements{}
	for _, l := range p.Latencies {
		m := all[l.Location]
		all[l.Location] = measurements{m.sum + float64(l.Milliseconds), m.n + 1, max(m.worst, l.Milliseconds)}
	}
	return all
}

// latency returns the average over the players who measured the location, and the largest value. If no player did, the average is
// infinite.
func (m measurements) latency() (average float64, worst float32) {
	if m.n == 0 {
		return 1e300, 0
	}
	return m.sum / float64(m.n), m.worst
}
