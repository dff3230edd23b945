package playerflow

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// DecidePenalty is what the studio makes of a penalty that was given a moment ago. It holds only for that one: a later
// offence, or an operator, is above it.
type DecidePenalty struct {
	Player string
	Kind   flow.PenaltyKind
	Since  domain.Time // of the offence

	Clear bool          // the offence does not count: one step down again, and no lock of it
	Level int32         // otherwise: the place on the scale
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
	i := slices.IndexFunc(all, func(p flow.Penalty) bool { return p.Kind == cmd.Kind && p.Since == cmd.Since })
	if i < 0 {
		return nil
	}
	if cmd.Clear {
		t.liftPenalty(r, i)
		return nil
	}
	x := all[i]
	x.Level, x.Until = cmd.Level, 0
	if cmd.Lock > 0 {
		x.Until = t.Now.Add(cmd.Lock)
	}
	t.replacePenalty(r, i, x, flow.OnPenaltyApplied)
	return nil
}

// liftPenalty takes the latest offence of a kind back: one step down again, and no lock of it. I is its place among the player's.
func (t *Tx) liftPenalty(r flow.PlayerRef, i int) {
	x := t.Flow.Players.Get(r).Penalties[i]
	x.Level, x.Until = x.Level-1, 0
	t.replacePenalty(r, i, x, flow.OnPenaltyLifted)
}

// replacePenalty puts another penalty in the place of one, or nothing if nothing is left of it.
func (t *Tx) replacePenalty(r flow.PlayerRef, i int, x flow.Penalty, told flow.MessageType) {
	p := t.Flow.Players.Get(r)
	id, all := p.ID, slices.Clone(p.Penalties)
	if all[i] = x; x.Level <= 0 && x.Until == 0 {
		all = slices.Delete(all, i, i+1)
	}
	t.changePlayer(r, func(e *PlayerChanged) { e.Penalties = all })
	if t.Config.Penalties.Mode == flow.PenaltiesEnforced {
		t.tellPlayers(told, flow.Message{Penalty: &x}, id)
	} else {
		t.tellOnlyStudio(told, flow.Message{Penalty: &x}, id)
	}
}

// checkLevel checks a place on a scale that somebody else names: the next offence counts from it.
func checkLevel(level int32) error {
	if level < 0 {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "level: %d, want 0 or more", level)
	}
	return nil
}

// Penalties are the places of a player on the scales.
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
