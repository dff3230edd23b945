package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
)

func (c *Cell) applyProcess(at domain.Time, event Event) {
	switch e := event.(type) {
	case *ProcessConnected:
		c.applyConnected(at, e)
	case *ProcessActivated:
		c.applyActivated(at, e)
	case *ProcessLinkLost:
		r, _ := c.fleets.Process(e.Process)
		c.unlink(r, e.LostBy)
	case *ProcessHealthChanged:
		r := c.changeProcess(e.Process, func(p *fleet.Process) { p.Health, p.HealthAt, p.UnhealthyBy = e.Health, at, e.UnhealthyBy })
		c.waiting.set(unhealthy, r, e.UnhealthyBy)
	case *ProcessSettled:
		c.changeProcess(e.Process, func(p *fleet.Process) { p.Settled = true })
	case *ProcessRefreshing:
		c.changeProcess(e.Process, func(p *fleet.Process) { p.Refreshing = e.Begun })
	case *ProcessTerminationAsked:
		r := c.changeProcess(e.Process, func(p *fleet.Process) {
			p.TerminateBy, p.TerminationTime, p.TerminateWhy, p.AskedAt = e.By, e.Time, e.Why, at
			p.ReadyBy, p.UnhealthyBy = 0, 0
		})
		c.waiting.clear(ready, r)
		c.waiting.clear(unhealthy, r)
		c.waiting.set(termination, r, e.By)
	case *ProcessEnded:
		c.applyProcessEnded(at, e)
	case *ProcessForgotten:
		r, _ := c.fleets.Process(e.Process)
		c.waiting.clearProcess(r)
		c.waiting.clear(forgetProcess, r)
		c.fleets.RemoveProcess(r)
		c.touch()
	}
}

// changeProcess lets f change a process and brings the index of idle ones up to date.
func (c *Cell) changeProcess(key fleet.Key, f func(*fleet.Process)) fleet.Ref {
	r, _ := c.fleets.Process(key)
	p := c.fleets.Processes.Mut(r)
	f(p)
	p.Changed = c.touch()
	c.fleets.Reindex(r)
	return r
}

func (c *Cell) unlink(r fleet.Ref, lostBy domain.ContactTime) {
	p := c.fleets.Processes.Mut(r)
	p.Linked, p.Refreshing, p.LinkAt, p.Changed = false, false, c.last, c.touch()
	if p.State == fleet.Ended {
		lostBy = 0 // nobody waits for it
	}
	p.LostBy = lostBy
	c.waiting.set(lost, r, lostBy)
	c.fleets.Reindex(r)
}

func (c *Cell) applyConnected(at domain.Time, e *ProcessConnected) {
	r, ok := c.fleets.Process(e.Process)
	if !ok {
		compute, _ := c.fleets.Compute(e.Process.Fleet, e.Process.Compute)
		x := c.fleets.Computes.Mut(compute)
		x.ProcessesEver++
		key := fleet.Key{Fleet: x.FleetID, Compute: x.Name, Process: e.Process.Process} // shares the strings
		r = c.fleets.AddProcess(fleet.Process{
			Key: key, Compute: compute, Location: x.Location, State: fleet.Initialized, Life: 1, Connected: at, ReadyBy: e.ReadyBy, Token: e.Token,
		})
		c.waiting.set(ready, r, e.ReadyBy)
	}
	c.changeProcess(e.Process, func(p *fleet.Process) {
		p.Linked, p.Link, p.LinkAt, p.LostBy, p.SDK = true, e.Link, at, 0, e.SDK
	})
	c.waiting.clear(lost, r)
}

func (c *Cell) applyActivated(at domain.Time, e *ProcessActivated) {
	if e.New {
		r, _ := c.fleets.Process(e.Process)
		c.waiting.clearProcess(r)
		c.waiting.clear(forgetProcess, r)
		c.fleets.Renew(r, at)
		c.fleets.Computes.Mut(c.fleets.Processes.Get(r).Compute).ProcessesEver++
	}
	r := c.changeProcess(e.Process, func(p *fleet.Process) {
		if p.State == fleet.Initialized {
			p.Ready = at
		}
		p.State, p.Port, p.LogPaths, p.Activation, p.ReadyBy = fleet.ProcessReady, e.Port, e.LogPaths, e.Request, 0
		// What was known of the health was that of another start; before a heartbeat of this one it would lose a game session.
		p.Health, p.HealthAt, p.Settled, p.UnhealthyBy = fleet.Unheard, 0, false, e.UnhealthyBy
		if e.SDK != "" {
			p.SDK = e.SDK
		}
		p.Tool = e.Tool
		if e.New {
			p.Linked, p.Link = true, e.Link
		}
	})
	c.waiting.clear(ready, r)
	c.waiting.set(unhealthy, r, e.UnhealthyBy)
}

func (c *Cell) applyProcessEnded(at domain.Time, e *ProcessEnded) {
	r := c.changeProcess(e.Process, func(p *fleet.Process) {
		p.State, p.EndedAt, p.ForgetAt, p.EndReason, p.Ending = fleet.Ended, at, e.ForgetAt, e.Reason, e.Request
		p.ReadyBy, p.LostBy, p.UnhealthyBy, p.TerminateBy = 0, 0, 0, 0
	})
	c.waiting.clearProcess(r)
	c.waiting.setWall(forgetProcess, r, e.ForgetAt)
}
