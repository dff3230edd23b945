package hosting

import (
	"fmt"
	"strings"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/placement"
)

// This file moves rollouts through their steps. A step ends at a contact deadline, so that it measures time in which the service could observe the
// new fleet. A condition that ends a rollout early, derived from its record and the old fleet's server processes, sets a deadline that is due at
// once. Nothing here ends a game session.

// rollout returns a copy of the latest rollout of an alias.
func (c *State) rollout(alias string) (fleet.Rollout, bool) {
	at, ok := c.Fleets.Rollouts.Find(alias)
	if !ok {
		return fleet.Rollout{}, false
	}
	return *c.Fleets.Rollouts.Get(at), true
}

// sharing returns the rollout that currently splits the new game sessions of an alias between two fleets.
func (c *State) sharing(alias string) (fleet.Rollout, bool) {
	r, ok := c.rollout(alias)
	return r, ok && r.Shares()
}

// beginStep begins a step of a rollout. The last step points the alias to the new fleet.
func (t *Tx) beginStep(r *fleet.Rollout, step int32) {
	r.Begin(step, t.Now, t.Contact.Add(r.StepTime), t.running(r.To))
	t.Emit(&RolloutChanged{*r})
	if !r.Shares() {
		t.point(r.Alias, r.To)
	}
	t.replanAll(t.Now)
}

// point points an alias to a fleet.
func (t *Tx) point(alias, fleetID string) {
	old, _ := t.Fleets.Aliases.Find(alias)
	a := *t.Fleets.Aliases.Get(old)
	if a.Fleet == fleetID && !a.Terminal {
		return
	}
	a.Fleet, a.Terminal, a.Message, a.Updated = fleetID, false, "", t.Now
	t.Emit(&AliasChanged{a})
}

// stepOver begins the next step, or completes the rollout. It ends a rollout that must end: of the deadlines in one Tick, those of steps come first.
func (t *Tx) stepOver(r fleet.Rollout) {
	if ends, _ := t.mustEnd(&r); ends {
		t.endRollout(r)
		return
	}
	if next := r.Step + 1; int(next) < len(r.Weights) {
		t.beginStep(&r, next)
		t.rolloutEvent(&r, "has begun its next step: "+t.inWords(&r))
		return
	}
	r.Phase, r.StepBy, r.Ended, r.Why = fleet.RolloutDone, 0, t.Now, "every step is over"
	t.drain(&r)
	t.Emit(&RolloutChanged{r})
	t.rolloutEvent(&r, "is done: "+r.Why)
}

// drain takes the hosts from the old fleet. Hosts with game sessions leave it when the last one has ended.
func (t *Tx) drain(r *fleet.Rollout) {
	f, managed := t.ManagedFleet(r.From)
	user := t.usedBy(r.From, r.Alias)
	switch {
	case r.Keep:
		r.Why += "; the old fleet keeps its hosts, as was asked for"
		return
	case !managed || f.Status == fleet.Deleting:
		return
	case user != "":
		r.Why += "; the old fleet keeps its hosts, because " + user + " uses it"
		return
	}
	drained, had := f.Drain()
	t.scaled(f, drained, "alias "+r.Alias+" was rolled out to fleet "+r.To+", and automatic scaling stops")
	r.Drained = had
}

// scaled stores a fleet with changed desired numbers of hosts.
func (t *Tx) scaled(old *fleet.Fleet, f fleet.Fleet, why string) {
	before := old.Locations
	t.Emit(&FleetChanged{f})
	for i, l := range f.Locations {
		if from := before[i].Capacity.Desired; from != l.Capacity.Desired {
			t.fleetEvent(f.ID, "FLEET_SCALING_EVENT", fmt.Sprintf("Desired instances of fleet %s in %s changed from %d to %d: %s", f.ID, l.Name, from, l.Capacity.Desired, why))
		}
	}
}

// goBack ends a moving rollout: the alias points to the old fleet, which gets all new game sessions.
func (t *Tx) goBack(r *fleet.Rollout, why string) {
	r.Phase, r.StepBy, r.Ended, r.Why = fleet.RolloutUndone, 0, t.Now, why
	t.Emit(&RolloutChanged{*r})
	t.point(r.Alias, r.From)
	t.replanAll(t.Now)
	t.rolloutEvent(r, "is over, and new game sessions go to fleet "+r.From+" again: "+why)
}

// beginReturn undoes a completed rollout. The old fleet gets back the hosts that it had, and the alias follows when a server process of the old fleet
// is ready.
func (t *Tx) beginReturn(r *fleet.Rollout, why string) {
	if f, ok := t.ManagedFleet(r.From); ok && len(r.Drained) > 0 {
		t.scaled(f, f.Undrain(r.Drained), "the rollout of alias "+r.Alias+" to fleet "+r.To+" is undone")
	}
	r.Drained = nil
	if at, ok := t.Fleets.Fleet(r.From); ok && t.serving(t.fleet(at)) > 0 {
		t.goBack(r, why)
		return
	}
	r.Phase, r.Ended, r.Why = fleet.RolloutReturning, t.Now, why
	t.Emit(&RolloutChanged{*r})
	t.rolloutEvent(r, "is being undone: the alias follows when a server process of fleet "+r.From+" is ready")
}

// endRollout ends a rollout that must end.
func (t *Tx) endRollout(r fleet.Rollout) {
	why := r.Why
	if _, failing := t.mustEnd(&r); failing != "" {
		why = failuresInWords(&r, failing)
	}
	t.goBack(&r, why)
}

func failuresInWords(r *fleet.Rollout, what string) string {
	failed, all, how := r.ProcessesFailed, r.Processes, "ended with an error"
	if what == "game sessions" {
		failed, all, how = r.SessionsFailed, r.Sessions, "were never active"
	}
	return fmt.Sprintf("%d of %d %s of fleet %s %s since the step began; the bound is %d and %d %%", failed, all, what, r.To, how, r.Failures, r.FailurePercent)
}

// inWords describes where new game sessions go in the step, and what follows.
func (t *Tx) inWords(r *fleet.Rollout) string {
	text := fmt.Sprintf("%d %% of new game sessions go to fleet %s", r.Weight(), r.To)
	if r.Weight() == 100 {
		text = "all new game sessions go to fleet " + r.To
	}
	var next []string
	for _, w := range r.Weights[r.Step+1:] {
		next = append(next, fmt.Sprintf("%d %%", w.Percent))
	}
	if len(next) > 0 {
		return text + ", and after " + r.StepTime.String() + " " + strings.Join(next, ", ")
	}
	return text + ", and after " + r.StepTime.String() + " fleet " + r.From + " drains"
}

// rolloutEvent records in both fleets' events what has happened.
func (t *Tx) rolloutEvent(r *fleet.Rollout, what string) {
	at, _ := t.Fleets.Aliases.Find(r.Alias)
	message := fmt.Sprintf("The rollout of alias %s (%s) from fleet %s to fleet %s %s", r.Alias, t.Fleets.Aliases.Get(at).Name, r.From, r.To, what)
	for _, id := range []string{r.From, r.To} {
		if _, ok := t.Fleets.Fleet(id); ok {
			t.fleetEvent(id, "GENERIC_EVENT", message)
		}
	}
}

// shareOut chooses the fleet of a CreateGameSession for an alias that a rollout splits. It returns the turn that the request takes, if any.
func (t *Tx) shareOut(cmd *CreateGameSession) (turn *RolloutTurnTaken) {
	r, ok := t.sharing(cmd.Alias)
	if !ok {
		return nil
	}
	toNew := r.Next()
	if cmd.Parameters != 0 && r.Involves(cmd.Fleet) {
		// The archive was searched for an id in this fleet. The old fleet may serve the new one's turn.
		return &RolloutTurnTaken{Alias: r.Alias, New: cmd.Fleet == r.To || toNew && !t.free(r.To, cmd.Location)}
	}
	cmd.Fleet = t.nextFleet(&r, cmd.Location)
	return &RolloutTurnTaken{Alias: r.Alias, New: toNew}
}

// nextFleet returns the fleet of the next CreateGameSession for an alias that a rollout splits.
func (c *State) nextFleet(r *fleet.Rollout, location string) string {
	if r.Next() && c.free(r.To, location) || !c.has(r.From, location) && c.has(r.To, location) {
		return r.To
	}
	return r.From
}

func (c *State) has(fleetID, location string) bool {
	r, ok := c.Fleets.Fleet(fleetID)
	if !ok {
		return false
	}
	status, ok := c.fleet(r).HasLocation(location)
	return ok && status == fleet.Active
}

// free reports whether a fleet could host a game session in a location now.
func (c *State) free(fleetID, location string) bool {
	return c.has(fleetID, location) && c.Fleets.IdleCount(fleetID, location) > 0
}

// takeTurns draws a placement's turns in rollouts for which it has none.
func (t *Tx) takeTurns(at placement.Ref) {
	if len(t.moving) == 0 {
		return
	}
	p := t.Placement(at)
	queue, ok := t.Placements.Queue(p.Queue)
	if !ok {
		return
	}
	id, aliases := p.ID, t.Queue(queue).Destinations
	for _, arn := range aliases {
		alias := arn[strings.LastIndexByte(arn, '/')+1:]
		r, ok := t.sharing(alias)
		if !ok {
			continue
		}
		if _, drawn := t.Placement(at).TurnAt(alias, r.No); !drawn {
			t.Emit(&RolloutTurnTaken{Alias: alias, Placement: id, New: r.Next()})
		}
	}
}
