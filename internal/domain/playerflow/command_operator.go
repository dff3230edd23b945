package playerflow

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// ForceLogout ends the login session of a player. The keys stay; the offline timers run.
type ForceLogout struct{ Player string }

func (cmd *ForceLogout) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.operated(cmd.Player, "ForceLogout")
	if err == nil {
		t.endLogin(r)
	}
	return err
}

// operated finds a player whom an operator acts upon.
func (t *Tx) operated(player, cause string) (flow.PlayerRef, error) {
	if err := t.flowOn(); err != nil {
		return 0, err
	}
	t.Cause = cause
	return t.playerNamed(player)
}

// ForceRelease takes keys from a player, and all that goes with them: who loses the party or the ticket leaves the search,
// who loses the game leaves it.
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
		t.endMembership(p.Membership(), flow.ByTheOperator)
	}
	if party, ok := t.Flow.Party(p.Keys.Party); ok && cmd.Ticket && t.Flow.Parties.Get(party).Search != nil {
		t.endSearch(party, flow.OnLeftMatchmaking, flow.MemberRemoved, cmd.Player)
	}
	if cmd.Party {
		t.leaveParty(r, flow.ShutDown)
	}
	return nil
}

// ForceEnd ends a game instance and tells its host to end.
type ForceEnd struct{ Instance domain.UUID }

func (cmd *ForceEnd) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	r, ok := t.Flow.Instance(cmd.Instance)
	if !ok {
		return flow.Refuse(flow.Refusal{Code: flow.GameInstanceNotFound}, "game instance gi-%s not found", cmd.Instance)
	}
	t.Cause = "ForceEnd"
	game := t.Flow.Instances.Get(r).Game
	t.endInstance(r, flow.ByTheOperator, flow.ByTheOperator, "", nil)
	t.stopHost(game)
	return nil
}

// BanPlayer refuses a player's logins, and takes the player out of everything; or lets the player in again.
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
		t.endMembership(m, flow.Removed)
	}
	t.leaveParty(r, flow.Banned)
	t.endLogin(r)
	return nil
}

// SetPenalty puts a player on a scale, or takes the player off it with Level 0 and no Until.
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
	old := t.Flow.Players.Get(r).Penalties
	all := slices.DeleteFunc(slices.Clone(old), func(p flow.Penalty) bool { return p.Kind == cmd.Penalty.Kind })
	lifted := len(all) < len(old)
	if applied := cmd.Penalty.Level > 0 || cmd.Penalty.Until > t.Now; applied {
		cmd.Penalty.Since = t.Now
		all = append(all, cmd.Penalty)
		t.tellPlayers(flow.OnPenaltyApplied, flow.Message{Penalty: &cmd.Penalty}, cmd.Player)
	} else if lifted || cmd.Penalty.Kind == flow.Requeue {
		t.tellPlayers(flow.OnPenaltyLifted, flow.Message{Penalty: &cmd.Penalty}, cmd.Player)
	}
	t.changePlayer(r, func(e *PlayerChanged) {
		e.Penalties = all
		if cmd.Penalty.Kind == flow.Requeue {
			e.Leaves, e.LeavesSince, e.RequeueLevel, e.RequeueUntil = 0, 0, 0, cmd.Penalty.Until
		}
	})
	return nil
}

// SetQueue opens a queue for players or closes it. Tickets that wait in a closed one end, some at a time.
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
	if !allowed || !known && !t.Flow.Closed(cmd.Name) { // one that is gone can still be opened for its successor
		return flow.Refuse(flow.Refusal{Code: flow.QueueNotFound}, "queue %s not found", cmd.Name)
	}
	t.Cause = "SetQueue"
	if t.Flow.Closed(cmd.Name) != cmd.Closed {
		q := t.queueNamed(cmd.Name)
		q.Closed, q.Drained = cmd.Closed, false
		t.Emit(&FlowQueueChanged{q})
	}
	return nil
}

// drainStep is how many searches of a closed queue end in one transaction.
const drainStep = 64

// drainQueue ends some of the searches of a queue that is closed.
func (t *Tx) drainQueue(r flow.QueueRef) {
	q := *t.Flow.Queues.Get(r)
	var searching []flow.PartyRef
	t.Flow.SearchingIn(q.Name, domain.UUID{}, func(party flow.PartyRef) bool {
		searching = append(searching, party)
		return len(searching) < drainStep
	})
	t.Cause = "QueueClosed"
	for _, party := range searching {
		t.endSearch(party, flow.OnMatchmakingFailed, flow.QueueClosed, "")
	}
	if len(searching) < drainStep {
		q.Drained = true
		t.Emit(&FlowQueueChanged{q})
	}
}

// penaliseEnd notes what the end of a membership says about its player.
func (t *Tx) penaliseEnd(m *flow.Membership, reason flow.Reason) {
	x := t.Flow.Instances.Get(m.InstanceRef())
	lost := m.LostAt != 0
	switch {
	case x.Unranked || x.Suspect != 0 || m.Excused || m.Unasked:
	case t.couldNotCome(m, x, reason):
	case reason == flow.NoShow:
		t.penalise(m.PlayerRef(), flow.Dodge, m.Instance, reason)
	case (reason == flow.Left || reason == flow.DeclinedReconnect) && !m.WasActive:
		t.penalise(m.PlayerRef(), flow.Dodge, m.Instance, reason)
	case reason == flow.Left, reason == flow.DeclinedReconnect, reason == flow.ReconnectExpired, reason == flow.TooManyDisconnects,
		reason == flow.Disconnected && lost:
		t.penalise(m.PlayerRef(), flow.Leave, m.Instance, reason)
	}
}

// couldNotCome reports whether a player is not where the game is, and could not be: nobody is let into a game whose host is to end,
// and a client has its time to come back to a service that was down.
func (t *Tx) couldNotCome(m *flow.Membership, x *flow.Instance, reason flow.Reason) bool {
	switch reason {
	case flow.NoShow, flow.ReconnectExpired:
		return x.Status == flow.InstanceEnding || t.Flow.Players.Get(m.PlayerRef()).Presence == flow.Unknown
	case flow.Disconnected, flow.TooManyDisconnects:
		return x.Status == flow.InstanceEnding
	}
	return false
}

// penalise moves a player one step up a scale. The lock is computed in every mode but OFF; whether it keeps the player
// from searching is looked at then.
func (t *Tx) penalise(r flow.PlayerRef, kind flow.PenaltyKind, instance domain.UUID, reason flow.Reason) {
	config := &t.Config.Penalties
	if config.Mode == flow.PenaltiesOff {
		return
	}
	steps, decay := config.LeaveSteps, config.LeaveDecay
	switch kind {
	case flow.Dodge:
		steps, decay = config.DodgeSteps, config.DodgeDecay
	case flow.AFK:
		steps, decay = config.AFKSteps, config.AFKDecay
	}
	p := t.Flow.Players.Get(r)
	next := flow.Penalty{Kind: kind, Since: t.Now, Instance: instance, Reason: reason, Level: 1}
	all := slices.Clone(p.Penalties)
	i := slices.IndexFunc(all, func(x flow.Penalty) bool { return x.Kind == kind })
	if i >= 0 {
		next.Level += Decayed(all[i], decay, t.Now)
		next.Until = all[i].Until // an operator may have set it, or the studio
		all[i] = next
	} else {
		all = append(all, next)
		i = len(all) - 1
	}
	if lock := steps[min(int(next.Level), len(steps))-1]; lock > 0 {
		all[i].Until = max(next.Until, t.Now.Add(lock))
	}
	applied := all[i]
	id := p.ID
	t.changePlayer(r, func(e *PlayerChanged) { e.Penalties = all })
	if config.Mode == flow.PenaltiesEnforced {
		t.tellPlayers(flow.OnPenaltyApplied, flow.Message{Penalty: &applied}, id)
	} else {
		t.tellOnlyStudio(flow.OnPenaltyApplied, flow.Message{Penalty: &applied}, id)
	}
}

// Decayed is the level that is left of a penalty: one step less for each period without an offence.
func Decayed(p flow.Penalty, period time.Duration, now domain.Time) int32 {
	if period <= 0 {
		return p.Level
	}
	return int32(max(0, int64(p.Level)-int64(now.Sub(p.Since)/period)))
}

// lockOf is the lock that keeps a player from searching now; nil when there is none.
func (t *Tx) lockOf(p *flow.Player) *flow.Penalty {
	return t.lockAt(p, t.Now)
}

// Locks are the locks that keep a player from searching at a time.
func (c *State) Locks(p *flow.Player, now domain.Time) (all []flow.Penalty) {
	if p.RequeueUntil > now {
		all = append(all, flow.Penalty{Kind: flow.Requeue, Level: p.RequeueLevel, Since: p.LeavesSince, Until: p.RequeueUntil, Reason: flow.Requested})
	}
	for _, x := range p.Penalties {
		if x.Until > now && (x.Kind == flow.ByOperator || c.Config.Penalties.Mode == flow.PenaltiesEnforced) {
			all = append(all, x)
		}
	}
	return all
}

func (c *State) lockAt(p *flow.Player, now domain.Time) *flow.Penalty {
	if all := c.Locks(p, now); len(all) > 0 {
		return &all[0]
	}
	return nil
}
