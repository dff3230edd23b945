package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// ForceLogout ends the login session of a player. The keys stay; the offline timers run.
type ForceLogout struct{ Player string }

func (cmd *ForceLogout) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.operated(cmd.Player, "ForceLogout")
	if err == nil {
		t.logins.end(r)
	}
	return err
}

// ForceRelease removes keys from a player, with their consequences: without the party or ticket the player leaves the
// search, without the game the player leaves the game.
type ForceRelease struct {
	Player              string
	Party, Ticket, Game bool
}

func (cmd *ForceRelease) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.operated(cmd.Player, "ForceRelease")
	if err != nil {
		return err
	}
	p := t.Flow.Players.Get(r)
	if cmd.Game && p.Membership() != 0 {
		t.Memberships.end(p.Membership(), flow.ByTheOperator)
	}
	if party, ok := t.Flow.Party(p.Keys.Party); ok && (cmd.Ticket || cmd.Party) && t.Flow.Parties.Get(party).Search != nil {
		t.searches.end(party, flow.OnLeftMatchmaking, flow.MemberRemoved, cmd.Player)
	}
	if cmd.Party {
		t.parties.leave(r, flow.ShutDown)
	}
	return nil
}

// ForceEnd ends a game instance and tells its host to end.
type ForceEnd struct{ Instance flow.InstanceID }

func (cmd *ForceEnd) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	r, ok := t.Flow.Instance(cmd.Instance)
	if !ok {
		return flow.Refuse(flow.Refusal{Code: flow.GameInstanceNotFound}, "game instance %s not found", cmd.Instance)
	}
	t.Cause = "ForceEnd"
	game := t.Flow.Instances.Get(r).Game
	t.Games.end(r, flow.ByTheOperator, flow.ByTheOperator, "", nil)
	t.Games.stopHost(game)
	return nil
}

// BanPlayer refuses a player's logins and removes the player from party, search and game; or it lifts the ban.
type BanPlayer struct {
	Player string
	Banned bool
}

func (cmd *BanPlayer) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.operated(cmd.Player, "BanPlayer")
	if err != nil {
		return err
	}
	t.changePlayer(r, func(e *PlayerChanged) { e.Banned = cmd.Banned })
	if !cmd.Banned {
		return nil
	}
	if m := t.Flow.Players.Get(r).Membership(); m != 0 {
		t.Memberships.end(m, flow.Removed)
	}
	t.parties.leave(r, flow.Banned)
	t.logins.end(r)
	return nil
}

// SetPenalty puts a player on a scale of penalties, or removes the player from it if Level is 0 and Until is unset.
type SetPenalty struct {
	Player  string
	Penalty flow.Penalty
}

func (cmd *SetPenalty) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.operated(cmd.Player, "SetPenalty")
	if err != nil {
		return err
	}
	if err := checkLevel(cmd.Penalty.Level); err != nil {
		return err
	}
	p, requeue := t.Flow.Players.Get(r), cmd.Penalty.Kind == flow.Requeue // which is stored apart from the other penalties
	old, counted := p.Penalties, p.Requeues()
	all := slices.DeleteFunc(slices.Clone(old), func(p flow.Penalty) bool { return p.Kind == cmd.Penalty.Kind })
	lifted := len(all) < len(old) || requeue && (counted.Level > 0 || counted.Until > t.Now)
	applied := cmd.Penalty.Level > 0 || cmd.Penalty.Until > t.Now
	if applied {
		cmd.Penalty.Since = t.Now
		if !requeue {
			all = append(all, cmd.Penalty)
		}
		t.penalties.tell(flow.OnPenaltyApplied, &cmd.Penalty, cmd.Player)
	} else if lifted {
		t.penalties.tell(flow.OnPenaltyLifted, &cmd.Penalty, cmd.Player)
	}
	t.changePlayer(r, func(e *PlayerChanged) {
		e.Penalties = all
		switch {
		case requeue && applied: // without a lock, store an expired one, so that the level decays
			e.Left, e.Leaves, e.LeavesSince, e.RequeueLevel, e.RequeueUntil = nil, 0, t.Now, cmd.Penalty.Level, max(cmd.Penalty.Until, t.Now)
		case requeue:
			e.Left, e.Leaves, e.LeavesSince, e.RequeueLevel, e.RequeueUntil = nil, 0, 0, 0, 0
		}
	})
	return nil
}

// SetQueue opens a queue for players or closes it. Tickets that wait in a closed queue end in batches.
type SetQueue struct {
	Name   string
	Closed bool
}

func (cmd *SetQueue) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	_, allowed := t.Config.Queue(cmd.Name)
	_, known := t.matchmaking.Configuration(cmd.Name)
	if !allowed || !known && !t.Flow.Closed(cmd.Name) { // a deleted queue can still be opened for its successor
		return flow.Refuse(flow.Refusal{Code: flow.QueueNotFound}, "queue %s not found", cmd.Name)
	}
	t.Cause = "SetQueue"
	if t.Flow.Closed(cmd.Name) != cmd.Closed {
		q := t.searches.queue(cmd.Name)
		q.Closed, q.Drained = cmd.Closed, false
		t.Emit(&FlowQueueChanged{q})
	}
	return nil
}
