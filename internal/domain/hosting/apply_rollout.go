package hosting

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// activationPatience is how long a placement's game session may be ACTIVATING before its end together with the placement counts as a failure of the
// server.
const activationPatience = 30 * time.Second

func (c *State) applyRollout(event kernel.Event) {
	switch e := event.(type) {
	case *RolloutChanged:
		r := e.Rollout
		r.Changed = c.Touch()
		at := c.Fleets.Rollouts.Put(r)
		c.Waiting.Set(RolloutStep, at.Any(), r.StepBy)
		c.summon(at)
		c.findMoving()
	case *RolloutTurnTaken:
		r := c.countIn(e.Alias)
		r.Turns++
		if e.New {
			r.TurnsNew++
		}
		if e.Placement != "" {
			turn := placement.Turn{Alias: r.Alias, No: r.No, New: e.New}
			c.changePlacement(e.Placement, func(p *placement.Placement) { p.Turns = append(slices.Clone(p.Turns), turn) })
		}
	case *LaunchFailed:
		c.eachTo(e.Fleet, func(r *fleet.Rollout) {
			r.Processes++
			r.ProcessesFailed++
		})
	}
}

// forgetRollout removes the rollout of a deleted alias.
func (c *State) forgetRollout(alias string) {
	if at, ok := c.Fleets.Rollouts.Find(alias); ok {
		c.Waiting.Clear(RolloutStep, at.Any())
		c.Waiting.Clear(RolloutEnd, at.Any())
		c.Fleets.Rollouts.Drop(at)
		c.findMoving()
	}
}

// findMoving lists the aliases whose rollouts are moving or returning.
func (c *State) findMoving() {
	c.moving = nil
	c.Fleets.Rollouts.Since(catalog.Place{}, func(r *fleet.Rollout) bool {
		if r.Phase == fleet.RolloutMoving || r.Phase == fleet.RolloutReturning {
			c.moving = append(c.moving, r.Alias)
		}
		return true
	})
}

func (c *State) countIn(alias string) *fleet.Rollout {
	at, _ := c.Fleets.Rollouts.Find(alias)
	r := c.Fleets.Rollouts.Mut(at)
	r.Changed = c.Touch()
	return r
}

// eachTo applies count to the rollouts that move to a fleet.
func (c *State) eachTo(fleetID string, count func(*fleet.Rollout)) {
	for _, alias := range c.moving {
		if r, _ := c.rollout(alias); r.Phase == fleet.RolloutMoving && r.To == fleetID {
			count(c.countIn(alias))
		}
	}
}

// movesTo reports whether a rollout moves to a fleet.
func (c *State) movesTo(fleetID string) (any bool) {
	for _, alias := range c.moving {
		r, _ := c.rollout(alias)
		any = any || r.Phase == fleet.RolloutMoving && r.To == fleetID
	}
	return any
}

// summonRollouts sets the deadlines of rollouts that must end at once.
func (c *State) summonRollouts() {
	for _, alias := range c.moving {
		if at, ok := c.Fleets.Rollouts.Find(alias); ok {
			c.summon(at)
		}
	}
}

func (c *State) summon(at chunk.Ref[fleet.Rollout]) {
	when := domain.Time(0)
	if ends, _ := c.mustEnd(c.Fleets.Rollouts.Get(at)); ends {
		when = kernel.AtOnce
	}
	c.Waiting.SetWall(RolloutEnd, at.Any(), when)
}

// mustEnd reports whether a rollout must end at once: its new fleet fails too often, or the old fleet, to which it returns, has a server process
// again.
func (c *State) mustEnd(r *fleet.Rollout) (ends bool, failing string) {
	switch r.Phase {
	case fleet.RolloutMoving:
		failing = r.TooManyFailures()
		return failing != "", failing
	case fleet.RolloutReturning:
		at, there := c.Fleets.Fleet(r.From)
		return there && c.fleet(at).Status == fleet.Active && c.serving(c.fleet(at)) > 0, ""
	}
	return false, ""
}

// countForRollouts updates the counts of rollouts to the fleet that an event is about. It runs before the event is applied.
func (c *State) countForRollouts(at domain.Time, event kernel.Event) {
	switch e := event.(type) {
	case *ProcessConnected:
		if e.New {
			c.eachTo(e.Process.Fleet, func(r *fleet.Rollout) { r.Processes++ })
		}
	case *ProcessActivated:
		if e.New {
			c.eachTo(e.Process.Fleet, func(r *fleet.Rollout) { r.Processes++ })
		}
	case *ProcessTerminationAsked:
		if e.Why == fleet.EndedUnhealthy {
			c.eachTo(e.Process.Fleet, processFailed)
		}
	case *ProcessEnded:
		at, _ := c.Fleets.Process(e.Process)
		if failedBy(e.Reason) && c.Process(at).TerminateBy == 0 {
			c.eachTo(e.Process.Fleet, processFailed)
		}
	case *GameSessionCreated:
		c.eachTo(e.Process.Fleet, func(r *fleet.Rollout) { r.Sessions++ })
	case *GameSessionEnded:
		if game, ok := c.Sessions.Game(e.ID); ok && neverActive(c.Game(game), e.Cause, at) {
			c.eachTo(e.ID.Fleet(), func(r *fleet.Rollout) { r.SessionsFailed++ })
		}
	}
}

func processFailed(r *fleet.Rollout) { r.ProcessesFailed++ }

// failedBy reports whether the reason for the end of a server process counts as its own failure, provided that the service had not asked it to end.
func failedBy(why fleet.EndReason) bool {
	return why == fleet.EndedCrashed || why == fleet.EndedReplaced || why == fleet.EndedNeverReady || why == fleet.EndedUnhealthy
}

// neverActive reports whether a game session ends without having been active, other than at the request of its creator or an operator.
func neverActive(g *session.GameSession, cause session.EndCause, at domain.Time) bool {
	if g.Status != session.Activating {
		return false
	}
	switch cause {
	case session.EndedNotActivated, session.EndedByServer, session.EndedByCrash, session.EndedByReplacement, session.EndedUnhealthy:
		return true
	case session.EndedWithPlacement:
		return at.Sub(g.Created) >= activationPatience
	}
	return false
}
