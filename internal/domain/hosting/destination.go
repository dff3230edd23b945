package hosting

import (
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/placement"
)

// destination resolves one destination of a queue: the ARN of a fleet or an alias, of which only the last part matters.
func (c *State) destination(index int, arn string) placement.Destination {
	d := placement.Destination{Index: index}
	name := arn[strings.LastIndexByte(arn, '/')+1:]
	if strings.HasPrefix(name, "alias-") {
		target, problem, detail := c.aliasTarget(name)
		if problem != 0 {
			d.Fleet, d.Problem, d.Detail = name, problem, detail
			return d
		}
		name = target
	}
	d.Fleet = name
	r, ok := c.Fleets.Fleet(name)
	if !ok {
		d.Problem, d.Detail = placement.NoSuchFleet, "fleet "+name+" not found"
		return d
	}
	f := c.fleet(r)
	if f.Status != fleet.Active {
		d.Problem, d.Detail = placement.FleetNotActive, "the fleet is "+f.Status.String()
		return d
	}
	for _, l := range f.Locations {
		if l.Status == fleet.Active {
			d.Locations = append(d.Locations, l.Name)
		}
	}
	if len(d.Locations) == 0 {
		d.Problem, d.Detail = placement.NoLocation, "the fleet has no active location"
	}
	if f.Cost != nil {
		d.Cost, _ = strconv.ParseFloat(*f.Cost, 64) // the API allows only digits
	}
	return d
}

// destinations resolves one destination of a placement's queue. If a rollout is moving an alias, the alias stands for the old fleet alone,
// or for the new one with the old one as a spare. Without the spare, a placement whose turn is the new fleet's would wait even if the old
// one has a free server process.
func (c *State) destinations(p *placement.Placement, index int, arn string) []placement.Destination {
	r, ok := c.sharing(arn[strings.LastIndexByte(arn, '/')+1:])
	if !ok {
		return []placement.Destination{c.destination(index, arn)}
	}
	old := c.destination(index, r.From)
	if toNew, _ := p.TurnAt(r.Alias, r.No); !toNew {
		return []placement.Destination{old}
	}
	to := c.destination(index, r.To)
	old.Spare, old.Cost = true, to.Cost
	return []placement.Destination{to, old}
}

// candidates returns the places that a placement may use now, best first, with places of failed attempts last. It also returns the places that the
// placement may not use, with the reasons.
func (c *State) candidates(r placement.Ref, now domain.Time) ([]placement.Candidate, []placement.Try) {
	p := c.Placement(r)
	queue, ok := c.Placements.Queue(p.Queue)
	if !ok {
		return nil, nil
	}
	q := c.Queue(queue)
	destinations := make([]placement.Destination, 0, len(q.Destinations))
	for i, arn := range q.Destinations {
		destinations = append(destinations, c.destinations(p, i, arn)...)
	}
	best, passed := q.Candidates(p, destinations, now)
	if slices.ContainsFunc(p.Tried, func(t placement.Try) bool { return t.Outcome == placement.ActivationFailed }) {
		slices.SortStableFunc(best, func(a, b placement.Candidate) int { return failures(p, a.Place) - failures(p, b.Place) })
	}
	return best, passed
}

// failures counts the failed attempts at a place.
func failures(p *placement.Placement, at placement.Place) int {
	n := 0
	for _, t := range p.Tried {
		if t.Outcome == placement.ActivationFailed && t.Fleet == at.Fleet && t.Location == at.Location {
			n++
		}
	}
	return n
}

// planRound schedules the next change of the latency cap of a waiting placement.
func (c *State) planRound(r placement.Ref, now domain.Time) {
	p := c.Placement(r)
	next := domain.Time(0)
	if queue, ok := c.Placements.Queue(p.Queue); ok && len(p.Latencies) > 0 {
		if _, until := c.Queue(queue).Cap(now.Sub(p.Start)); until > 0 {
			next = p.Start.Add(until)
		}
	}
	c.Waiting.SetWall(PlacementRound, r.Any(), next)
}

// replan makes the pending placements of a queue choose again, in small steps, because their candidates have changed. Until then they wait at no
// place, so that none is placed where it no longer may be. Candidates are not part of the state, only the outcome is.
func (c *State) replan(queue string, now domain.Time) {
	c.Placements.PendingIn(queue, func(r placement.Ref, p *placement.Placement) bool {
		if p.Game == "" {
			c.Placements.Wait(r, nil)
			c.Waiting.SetWall(PlacementRound, r.Any(), now)
		}
		return true
	})
}

// replanAll replans every queue after a change of a fleet or an alias, and after a restart.
func (c *State) replanAll(now domain.Time) {
	for _, q := range c.Placements.Queues.All() {
		c.replan(q.Name, now)
	}
}

// aliasTarget returns the fleet that an alias points to now; a queue resolves the alias at each attempt.
func (c *State) aliasTarget(id string) (fleetID string, problem placement.Outcome, detail string) {
	r, ok := c.Fleets.Aliases.Find(id)
	if !ok {
		return "", placement.NoSuchFleet, "alias " + id + " not found"
	}
	if a := c.Fleets.Aliases.Get(r); !a.Terminal {
		return a.Fleet, 0, ""
	}
	return "", placement.AliasTerminal, "alias " + id + " is terminal: it points to no fleet"
}
