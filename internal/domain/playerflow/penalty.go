package playerflow

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// ofEnd penalizes a player whose membership has ended, if the reason is an offence.
func (t *penalties) ofEnd(m *flow.Membership, reason flow.Reason) {
	x := t.Flow.Instances.Get(m.InstanceRef())
	lost := m.LostAt != 0
	switch {
	case x.Unranked || x.Suspect != 0 || m.Excused || m.Unasked:
	case t.couldNotCome(m, x, reason):
	case reason == flow.NoShow:
		t.add(m.PlayerRef(), flow.Dodge, m.Instance, reason)
	case (reason == flow.Left || reason == flow.DeclinedReconnect) && !m.WasActive:
		t.add(m.PlayerRef(), flow.Dodge, m.Instance, reason)
	case reason == flow.Left, reason == flow.DeclinedReconnect, reason == flow.ReconnectExpired, reason == flow.TooManyDisconnects,
		reason == flow.Disconnected && lost:
		t.add(m.PlayerRef(), flow.Leave, m.Instance, reason)
	}
}

// couldNotCome reports whether a player had no chance to come: a game whose host is about to end admits no player, and after downtime
// clients are given time to return.
func (t *penalties) couldNotCome(m *flow.Membership, x *flow.Instance, reason flow.Reason) bool {
	switch reason {
	case flow.NoShow, flow.ReconnectExpired:
		return x.Status == flow.InstanceEnding || t.Flow.Players.Get(m.PlayerRef()).Presence == flow.Unknown
	case flow.Disconnected, flow.TooManyDisconnects:
		return x.Status == flow.InstanceEnding
	}
	return false
}

// add moves a player one step up a scale. It computes the lock in every mode except OFF; the mode at the time of a search decides
// whether the lock applies.
func (t *penalties) add(r flow.PlayerRef, kind flow.PenaltyKind, instance flow.InstanceID, reason flow.Reason) {
	if t.Config.Penalties.Mode == flow.PenaltiesOff {
		return
	}
	steps, decay := t.scale(kind)
	p := t.Flow.Players.Get(r)
	next := flow.Penalty{Kind: kind, Since: t.Now, Instance: instance, Reason: reason, Level: 1}
	all := slices.Clone(p.Penalties)
	i := slices.IndexFunc(all, func(x flow.Penalty) bool { return x.Kind == kind })
	if i >= 0 {
		next.Level = min(Decayed(all[i], decay, t.Now)+1, int32(len(steps)))
		next.Until = all[i].Until // an operator or the studio may have set it
		all[i] = next
	} else {
		all = append(all, next)
		i = len(all) - 1
	}
	if lock := t.lockOf(&next); lock > 0 {
		all[i].Until = max(next.Until, t.Now.Add(lock))
	}
	applied := all[i]
	id := p.ID
	t.changePlayer(r, func(e *PlayerChanged) { e.Penalties = all })
	t.tell(flow.OnPenaltyApplied, &applied, id)
}

// tell tells the studio of a penalty, and the player if its lock applies.
func (t *penalties) tell(what flow.MessageType, x *flow.Penalty, player string) {
	if t.enforces(x.Kind) {
		t.tellPlayers(what, flow.Message{Penalty: x}, player)
	} else {
		t.tellOnlyStudio(what, flow.Message{Penalty: x}, player)
	}
}

// scale returns the locks for a kind of offence, and the time without an offence after which a player moves one step down.
func (t *penalties) scale(kind flow.PenaltyKind) (steps []time.Duration, decay time.Duration) {
	config := &t.Config.Penalties
	switch kind {
	case flow.Dodge:
		return config.DodgeSteps, config.DodgeDecay
	case flow.AFK:
		return config.AFKSteps, config.AFKDecay
	}
	return config.LeaveSteps, config.LeaveDecay
}

// lockOf returns how long a penalty's latest offence locks.
func (t *penalties) lockOf(x *flow.Penalty) time.Duration {
	steps, _ := t.scale(x.Kind)
	return steps[min(max(int(x.Level), 1), len(steps))-1]
}

// Decayed returns the remaining level of a penalty: one step less for each period without an offence.
func Decayed(p flow.Penalty, period time.Duration, now domain.Time) int32 {
	if period <= 0 {
		return p.Level
	}
	return int32(max(0, int64(p.Level)-int64(now.Sub(p.Since)/period)))
}

// lift takes back the latest offence of the player's i-th penalty: one step down again, without its lock. A longer lock comes from an
// earlier offence and stays.
func (t *penalties) lift(r flow.PlayerRef, i int) {
	x := t.Flow.Players.Get(r).Penalties[i]
	if x.Until <= x.Since.Add(t.lockOf(&x)) {
		x.Until = 0
	}
	x.Level--
	t.replace(r, i, x, flow.OnPenaltyLifted)
}

// replace replaces the player's i-th penalty by x, or removes it if x has neither a level nor a lock.
func (t *penalties) replace(r flow.PlayerRef, i int, x flow.Penalty, told flow.MessageType) {
	p := t.Flow.Players.Get(r)
	id, all := p.ID, slices.Clone(p.Penalties)
	if all[i] = x; x.Level <= 0 && x.Until == 0 {
		all = slices.Delete(all, i, i+1)
	}
	t.changePlayer(r, func(e *PlayerChanged) { e.Penalties = all })
	t.tell(told, &x, id)
}

// checkLevel checks a level set by an operator or the studio, from which the next offence counts.
func checkLevel(level int32) error {
	if level < 0 {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "level: %d, want 0 or more", level)
	}
	return nil
}

// Locks returns the locks that keep a player from searching at a time.
func (c *State) Locks(p *flow.Player, now domain.Time) (all []flow.Penalty) {
	if x := p.Requeues(); x.Until > now {
		all = append(all, flow.Penalty{Kind: flow.Requeue, Level: x.Level, Since: x.Since, Until: x.Until, Reason: flow.Requested})
	}
	for _, x := range p.Penalties {
		if x.Until > now && c.enforces(x.Kind) {
			all = append(all, x)
		}
	}
	return all
}

// enforces reports whether penalties of a kind lock the player. Those of operators and for repeated searches do so in every mode.
func (c *State) enforces(kind flow.PenaltyKind) bool {
	return kind == flow.ByOperator || kind == flow.Requeue || c.Config.Penalties.Mode == flow.PenaltiesEnforced
}

// lockAt returns the lock of a player that ends last; nil if there is none.
func (c *State) lockAt(p *flow.Player, now domain.Time) (last *flow.Penalty) {
	for _, x := range c.Locks(p, now) {
		if last == nil || x.Until > last.Until {
			last = &x
		}
	}
	return last
}
