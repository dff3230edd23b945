package hosting

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// QueueDepth counts the pending placements of a queue.
func (v *View) QueueDepth(queue string) placement.Depth { return v.c.Placements.QueueDepth(queue) }

// PendingIn returns up to `most` pending placements of a queue, the earliest first.
func (v *View) PendingIn(queue string, most int) (all []placement.Placement) {
	v.SawAll()
	v.c.Placements.PendingIn(queue, upTo(most, &all))
	return all
}

// PendingAfter returns up to `most` pending placements of a queue after the one with a start and a number, the earliest first.
func (v *View) PendingAfter(queue string, start domain.Time, no uint64, most int) (all []placement.Placement) {
	v.SawAll()
	v.c.Placements.PendingAfter(queue, start, no, upTo(most, &all))
	return all
}

// upTo returns a function that copies up to `most` placements.
func upTo(most int, all *[]placement.Placement) func(placement.Ref, *placement.Placement) bool {
	return func(_ placement.Ref, p *placement.Placement) bool {
		if len(*all) < most {
			*all = append(*all, *p)
		}
		return len(*all) < most
	}
}

// LocationDepths yields, in no particular order, the locations that waiting placements prefer. The counts are for metrics and may be ahead of what is
// durable.
func (v *View) LocationDepths(yield func(location string, d placement.Depth) bool) {
	v.c.Placements.LocationDepths(yield)
}

// Outcome is how a placement was fulfilled, in the terms of the queue metrics.
type Outcome struct {
	placement.Choice
	Missed    bool // it did not go to its first choice
	NotViable bool // its first choice could not host a game session at all: no server process runs there, or its hosts are drained
}

// PlacementOutcome compares the place of a fulfilled placement in memory with its choices as they are now. It is for metrics.
func (v *View) PlacementOutcome(id string) (o Outcome, ok bool) {
	c := v.c
	r, ok := c.Placements.Placement(id)
	if !ok {
		return o, false
	}
	p := c.Placement(r)
	queue, ok := c.Placements.Queue(p.Queue)
	if !ok {
		return o, false
	}
	q := c.Queue(queue)
	destinations := make([]placement.Destination, len(q.Destinations))
	for i, arn := range q.Destinations {
		destinations[i] = c.destination(i, arn)
	}
	went := session.ID(p.Game).Fleet()
	o.Choice = q.ChoiceOf(p, went, destinations, p.End)
	if o.Missed = o.First.Fleet != "" && o.First != (placement.Place{Fleet: went, Location: p.Location}); o.Missed {
		n := c.Fleets.SiteCounts(o.First.Fleet, o.First.Location)
		o.NotViable = n.Processes == 0 || n.Processes == n.Of(fleet.Drained)
	}
	return o, true
}

// PlacementsInMemory yields, in no particular order, the placements among the next step records, including ended ones that are still in memory. It
// returns where the next call begins; 0 at the end.
func (v *View) PlacementsInMemory(after placement.Ref, step int, yield func(*placement.Placement)) (next placement.Ref) {
	v.SawAll()
	at := after
	for p := range v.c.Placements.Placements.From(after, &at) {
		yield(p)
		if step--; step == 0 {
			return at
		}
	}
	return 0
}

// CountLinks adds the connected server processes among the next step records to the counts of the nodes that hold their connections. It returns where
// the next call begins; 0 at the end. The number of a single node is 0.
func (v *View) CountLinks(after fleet.ProcessRef, step int, counts map[uint32]int) (next fleet.ProcessRef) {
	v.SawAll()
	at := after
	for p := range v.c.Fleets.Processes.From(after, &at) {
		if p.Linked {
			counts[p.Node]++
		}
		if step--; step == 0 {
			return at
		}
	}
	return 0
}
