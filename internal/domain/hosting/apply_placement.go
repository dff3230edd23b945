package hosting

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

func (c *State) applyPlacement(at domain.Time, event kernel.Event) {
	switch e := event.(type) {
	case *QueueChanged:
		q := e.Queue
		q.Changed = c.Touch()
		c.Placements.PutQueue(q)
	case *QueueRemoved:
		c.Placements.RemoveQueue(e.Name)
		c.Touch()
	case *PlacementStarted:
		p := e.Placement
		p.Changed = c.Touch()
		c.placementNo = p.No
		r := c.Placements.Add(p)
		c.Waiting.SetWall(PlacementTimeout, r.Any(), p.TimeoutAt)
	case *PlacementRetried:
		c.changePlacement(e.ID, func(p *placement.Placement) {
			failed(p)
			p.Game, p.GameRegion, p.IPAddress, p.DNSName, p.Port, p.Location = "", "", "", "", 0, ""
		})
	case *PlacementPassed:
		c.changePlacement(e.ID, func(p *placement.Placement) { p.PassedOnce = true })
	case *PlacementEnded:
		no := c.Ended.Next()
		r := c.changePlacement(e.ID, func(p *placement.Placement) {
			if e.Status != placement.Fulfilled && p.Game != "" {
				failed(p)
			}
			p.Status, p.End, p.EndedNo = e.Status, at, no
			p.Tried = append(slices.Clone(p.Tried), e.Passed...)
		})
		c.ended(endedPlacement, r.Any())
		c.Waiting.Clear(PlacementTimeout, r.Any())
		c.Waiting.Clear(PlacementRound, r.Any())
	}
}

// failed marks the latest attempt of a placement as failed.
func failed(p *placement.Placement) {
	p.Tried = slices.Clone(p.Tried)
	if n := len(p.Tried); n > 0 && p.Tried[n-1].Outcome == placement.Reserved {
		p.Tried[n-1].Outcome = placement.ActivationFailed
	}
}

func (c *State) changePlacement(id string, f func(*placement.Placement)) placement.Ref {
	r, _ := c.Placements.Placement(id)
	c.Placements.Change(r, f).Changed = c.Touch()
	return r
}

func (c *State) applyPlaced(at domain.Time, id string, g *session.GameSession) {
	r := c.changePlacement(id, func(p *placement.Placement) {
		p.Game, p.GameRegion, p.IPAddress, p.DNSName, p.Port, p.Location = string(g.ID), g.Region, g.IPAddress, g.DNSName, g.Port, g.Location
		p.Tried = append(slices.Clone(p.Tried), placement.Try{
			At: at, Fleet: g.FleetID, Location: g.Location, Process: g.ProcessID, Outcome: placement.Reserved,
		})
	})
	c.Placements.Wait(r, nil)
	c.Waiting.Clear(PlacementRound, r.Any())
}
