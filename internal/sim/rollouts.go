package sim

import (
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// NewRollouts makes the world of a seed in which aliases move often, and placements go through them.
func NewRollouts(seed uint64) *World {
	w := NewHosts(seed)
	w.wishes.add([]maker{{20, createAlias}, {80, startPlacement}, {10, createQueue}, {60, startRollout}, {20, activateGame}})
	return w
}

// AddRollouts adds the commands of rollouts, which need the level of this release.
func (w *Wishes) AddRollouts() { w.add([]maker{{8, startRollout}, {2, undoRollout}}) }

// startRollout moves an alias in steps of seconds, with failure limits that crashes reach.
func startRollout(w *Wishes, v *cell.View) kernel.Command {
	a, ok := w.alias(v)
	if !ok {
		return nil
	}
	to := "gone"
	for _, f := range v.Fleets(0, "", 100) {
		serves := false
		for _, at := range v.Places(f.ID) {
			serves = serves || at.Hosts.Processes > 0
		}
		if f.ID != a.Fleet && (to == "gone" || w.oneIn(2)) && (serves || w.oneIn(10)) {
			to = f.ID
		}
	}
	weights := [][]int32{{100}, {10, 100}, {33, 50, 100}, {99, 100}}
	return &hosting.StartRollout{
		Alias: a.ID, To: to, Weights: weights[w.chance.IntN(len(weights))], StepTime: time.Duration(1+w.chance.IntN(60)) * time.Second,
		Failures: int32(1 + w.chance.IntN(4)), FailurePercent: int32(w.chance.IntN(60)), Keep: w.oneIn(4), By: "ops",
	}
}

func undoRollout(w *Wishes, v *cell.View) kernel.Command {
	a, ok := w.alias(v)
	if !ok {
		return nil
	}
	return &hosting.UndoRollout{Alias: a.ID, By: "ops"}
}

// rollouts is the chronicle's knowledge of rollouts: the current record of each alias, and the placements that got turns of new fleets.
type rollouts struct {
	now   map[string]fleet.Rollout
	turns map[turnKey]bool
	seen  map[string]int
}

type turnKey struct {
	placement, alias string
	no               uint32
}

// changed checks that a step begins only after the previous one, that no ended rollout continues, and that a rollout moves only to a fleet that serves.
func (b *rollouts) changed(w *World, r fleet.Rollout) {
	old, ok := b.now[r.Alias]
	same := ok && old.No == r.No
	switch {
	case !same && (r.Phase != fleet.RolloutMoving || r.Step != 0):
		w.violated("rollout %d of %s begins in phase %s at step %d", r.No, r.Alias, r.Phase, r.Step)
	case same && old.Phase == fleet.RolloutUndone:
		w.violated("rollout %d of %s was undone, and is %s", r.No, r.Alias, r.Phase)
	case same && r.Phase == fleet.RolloutMoving && (old.Phase != fleet.RolloutMoving || r.Step != old.Step+1):
		w.violated("rollout %d of %s goes from %s, step %d, to step %d", r.No, r.Alias, old.Phase, old.Step, r.Step)
	}
	b.now[r.Alias] = r
	b.seen["a rollout "+r.Phase.String()]++
	if r.TooManyFailures() != "" {
		b.seen["a rollout that failed"]++
	}
}

// turn checks that the share is kept, and that no placement gets two turns. A call with an idempotency token may take another turn than the next.
func (b *rollouts) turn(w *World, e *hosting.RolloutTurnTaken) {
	r := b.now[e.Alias]
	if !r.Shares() {
		w.violated("%s gives a turn, and its rollout is %s at %d %%", e.Alias, r.Phase, r.Weight())
	}
	if e.Placement != "" {
		key := turnKey{e.Placement, e.Alias, r.No}
		if _, drawn := b.turns[key]; drawn {
			w.violated("%s has two turns at %s", e.Placement, e.Alias)
		}
		b.seen["a turn of a placement"]++
		if b.turns[key] = e.New; e.New != (100*r.TurnsNew < (r.Turns+1)*int64(r.Weight())) {
			w.violated("%s got the wrong turn of %s: %d of %d were the new fleet's, at %d %%", e.Placement, e.Alias, r.TurnsNew, r.Turns, r.Weight())
		}
	}
	if r.Turns++; e.New {
		r.TurnsNew++
	}
	b.now[e.Alias] = r
}

// allows reports whether a placement may use the new fleet of an alias's rollout.
func (b *rollouts) allows(placement, alias, to string) bool {
	r, ok := b.now[alias]
	return ok && r.Shares() && r.To == to && b.turns[turnKey{placement, alias, r.No}]
}
