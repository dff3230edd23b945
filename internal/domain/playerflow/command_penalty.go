package playerflow

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// DecidePenalty changes a penalty according to the decision of the studio, which was asked when the penalty was given. It has no
// effect once a later offence, an operator or an earlier decision has changed that penalty.
type DecidePenalty struct {
	Player string
	Kind   flow.PenaltyKind
	Since  domain.Time // of the offence
	Given  int32       // its step on the scale, as computed
	Until  domain.Time // its lock, as computed

	Clear bool          // the offence does not count: one step down again, without its lock
	Level int32         // otherwise: the step on the scale
	Lock  time.Duration // from now on; 0: none
}

func (cmd *DecidePenalty) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.operated(cmd.Player, "DecidePenalty")
	if err != nil {
		return err
	}
	if err := checkLevel(cmd.Level); err != nil {
		return err
	}
	all := t.Flow.Players.Get(r).Penalties
	i := slices.IndexFunc(all, func(p flow.Penalty) bool {
		return p.Kind == cmd.Kind && p.Since == cmd.Since && p.Level == cmd.Given && p.Until == cmd.Until
	})
	if i < 0 {
		return nil
	}
	if cmd.Clear {
		t.penalties.lift(r, i)
		return nil
	}
	x := all[i]
	x.Level, x.Until = cmd.Level, 0
	if cmd.Lock > 0 {
		x.Until = t.Now.Add(cmd.Lock)
	}
	t.penalties.replace(r, i, x, flow.OnPenaltyApplied)
	return nil
}

// Penalties returns a player's penalties.
func (v *View) Penalties(player string) []flow.Penalty {
	r, ok := v.c.Flow.Player(player)
	if !ok {
		v.SawAll()
		return nil
	}
	p := v.c.Flow.Players.Get(r)
	v.Saw(p.Changed)
	return p.Penalties
}
