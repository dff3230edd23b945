package hosting

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

func (c *State) applyProcess(at domain.Time, event kernel.Event) {
	switch e := event.(type) {
	case *ProcessConnected:
		c.applyConnected(at, e)
	case *ProcessActivated:
		c.applyActivated(at, e)
	case *ProcessLinkLost:
		r, _ := c.Fleets.Process(e.Process)
		c.unlink(r, e.LostBy)
	case *ProcessHealthChanged:
		r := c.changeProcess(e.Process, func(p *fleet.Process) { p.Health, p.HealthAt, p.UnhealthyBy = e.Health, at, e.UnhealthyBy })
		c.Waiting.Set(Unhealthy, r.Any(), e.UnhealthyBy)
	case *ProcessSettled:
		c.changeProcess(e.Process, func(p *fleet.Process) { p.Settled = true })
	case *ProcessRefreshing:
		c.changeProcess(e.Process, func(p *fleet.Process) { p.Refreshing = e.Begun })
	case *ProcessTerminationAsked:
		r := c.changeProcess(e.Process, func(p *fleet.Process) {
			p.TerminateBy, p.TerminationTime, p.TerminateWhy, p.AskedAt = e.By, e.Time, e.Why, at
			p.ReadyBy, p.UnhealthyBy = 0, 0
		})
		c.Waiting.Clear(Ready, r.Any())
		c.Waiting.Clear(Unhealthy, r.Any())
		c.Waiting.Set(Termination, r.Any(), e.By)
	case *ProcessDied:
		report := &e.Exit
		r := c.changeProcess(e.Process, func(p *fleet.Process) { p.Exit = report })
		if g := session.GameRef(c.Process(r).Session); g != 0 {
			x := c.Sessions.Games.Mut(g)
			x.Exit, x.Changed = report, c.Touch()
		}
	case *ProcessEnded:
		c.applyProcessEnded(at, e)
	case *ProcessForgotten:
		r, _ := c.Fleets.Process(e.Process)
		c.clearProcess(r)
		c.Waiting.Clear(ForgetProcess, r.Any())
		c.Fleets.RemoveProcess(r)
		c.Touch()
	}
}

// changeProcess calls f to change a process, and updates the index of idle processes.
func (c *State) changeProcess(key fleet.Key, f func(*fleet.Process)) fleet.ProcessRef {
	r, _ := c.Fleets.Process(key)
	p := c.Fleets.Processes.Mut(r)
	f(p)
	p.Changed = c.Touch()
	c.Fleets.Reindex(r)
	return r
}

func (c *State) unlink(r fleet.ProcessRef, lostBy domain.ContactTime) {
	p := c.Fleets.Processes.Mut(r)
	p.Linked, p.Refreshing, p.LinkAt, p.Changed = false, false, c.Last(), c.Touch()
	if p.State == fleet.Ended {
		lostBy = 0 // an ended process needs no grace period
	}
	p.LostBy = lostBy
	c.Waiting.Set(Lost, r.Any(), lostBy)
	c.Fleets.Reindex(r)
}

// Links returns how many processes are connected to a node.
func (c *State) Links(node uint32) (n uint32) {
	for _, p := range c.Fleets.Processes.All() {
		if p.Linked && p.Node == node {
			n++
		}
	}
	return n
}

// NodeLost counts the connections of a node as lost, while the event that reports the loss is applied.
func (c *State) NodeLost(node uint32, lostBy domain.ContactTime) {
	for r, p := range c.Fleets.Processes.All() {
		if p.Linked && p.Node == node {
			c.unlink(r, lostBy)
		}
	}
}

func (c *State) applyConnected(at domain.Time, e *ProcessConnected) {
	r, ok := c.Fleets.Process(e.Process)
	if !ok {
		compute, _ := c.Fleets.Compute(e.Process.Fleet, e.Process.Compute)
		x := c.Fleets.Computes.Mut(compute)
		x.ProcessesEver++
		key := fleet.Key{Fleet: x.FleetID, Compute: x.Name, Process: e.Process.Process} // shares the strings
		r = c.Fleets.AddProcess(fleet.Process{
			Key: key, Compute: compute, Location: x.Location, State: fleet.Initialized, Life: 1, Connected: at, ReadyBy: e.ReadyBy, Token: e.Token,
		})
		c.Waiting.Set(Ready, r.Any(), e.ReadyBy)
	}
	c.changeProcess(e.Process, func(p *fleet.Process) {
		p.Linked, p.Link, p.Node, p.LinkAt, p.LostBy, p.SDK = true, e.Link, e.Node, at, 0, e.SDK
	})
	c.Waiting.Clear(Lost, r.Any())
}

func (c *State) applyActivated(at domain.Time, e *ProcessActivated) {
	if e.New {
		r, _ := c.Fleets.Process(e.Process)
		c.clearProcess(r)
		c.Waiting.Clear(ForgetProcess, r.Any())
		c.Fleets.Renew(r, at)
		c.Fleets.Computes.Mut(c.Process(r).Compute).ProcessesEver++
	}
	r := c.changeProcess(e.Process, func(p *fleet.Process) {
		if p.State == fleet.Initialized {
			p.Ready = at
		}
		p.State, p.Port, p.LogPaths, p.Activation, p.ReadyBy = fleet.ProcessReady, e.Port, e.LogPaths, e.Request, 0
		// The stored health belongs to an earlier start. If it were kept, it could end this process's game session before its
		// first heartbeat.
		p.Health, p.HealthAt, p.Settled, p.UnhealthyBy = fleet.Unheard, 0, false, e.UnhealthyBy
		if e.SDK != "" {
			p.SDK = e.SDK
		}
		p.Tool = e.Tool
		if e.New {
			p.Linked, p.Link, p.Node = true, e.Link, e.Node
		}
	})
	c.Waiting.Clear(Ready, r.Any())
	c.Waiting.Set(Unhealthy, r.Any(), e.UnhealthyBy)
}

func (c *State) applyProcessEnded(at domain.Time, e *ProcessEnded) {
	r := c.changeProcess(e.Process, func(p *fleet.Process) {
		p.State, p.EndedAt, p.ForgetAt, p.EndReason, p.Ending = fleet.Ended, at, e.ForgetAt, e.Reason, e.Request
		p.ReadyBy, p.LostBy, p.UnhealthyBy, p.TerminateBy = 0, 0, 0, 0
	})
	c.clearProcess(r)
	c.Waiting.SetWall(ForgetProcess, r.Any(), e.ForgetAt)
}

// clearProcess clears all deadlines of a process except that of its record.
func (c *State) clearProcess(r fleet.ProcessRef) {
	for kind := Ready; kind <= Termination; kind++ {
		c.Waiting.Clear(kind, r.Any())
	}
}
