package playerflow

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// contactDue ends what a deadline of player flow waits for. It always moves or clears the deadline.
func (t *Tx) contactDue(d kernel.Deadline) {
	f := t.Flow
	switch d.Kind {
	case PlayerPresence:
		t.Cause = "PresenceLost"
		t.goOffline(flow.PlayerRef(d.Ref))
	case PartyRemoval:
		t.Cause = "OfflineRemoval"
		e := presenceOf(f.Players.Get(flow.PlayerRef(d.Ref)))
		e.RemoveBy = 0
		t.Emit(e)
		t.leaveParty(flow.PlayerRef(d.Ref), flow.WentOffline)
	case QueueRemoval:
		t.Cause = "OfflineGrace"
		e := presenceOf(f.Players.Get(flow.PlayerRef(d.Ref)))
		e.LeaveQueueBy = 0
		t.Emit(e)
		if party, ok := f.Party(f.Players.Get(flow.PlayerRef(d.Ref)).Keys.Party); ok && f.Parties.Get(party).Search != nil {
			t.endSearch(party, flow.OnLeftMatchmaking, flow.MemberOffline, e.Player)
		}
	case PartyLeader:
		t.Cause = "LeaderGrace"
		t.leaderDue(flow.PartyRef(d.Ref))
	case PartyStale:
		t.Cause = "StaleExpiration"
		t.shutDownParty(flow.PartyRef(d.Ref), flow.PartyExpired)
	case PartyReady:
		t.Cause = "ReadyTimeout"
		t.readyDue(flow.PartyRef(d.Ref))
	case InviteExpiry:
		t.inviteDue(flow.InviteRef(d.Ref))
	case LoginExpiry:
		t.loginDue(flow.LoginRef(d.Ref))
	case InstanceAllocation:
		t.failAllocation(flow.InstanceRef(d.Ref), flow.AllocationTimeout)
	case InstanceAbsolute:
		t.Cause = "AbsoluteTimeout"
		game := f.Instances.Get(flow.InstanceRef(d.Ref)).Game
		t.endInstance(flow.InstanceRef(d.Ref), flow.AbsoluteTimeout, flow.AbsoluteTimeout, "", nil)
		t.stopHost(game)
	case InstanceEnding:
		t.Cause = "EndingGrace"
		t.endInstance(flow.InstanceRef(d.Ref), flow.Terminated, flow.GameTerminated, "", nil)
	case InstanceEmpty:
		t.Cause = "EmptyTimeout"
		game := f.Instances.Get(flow.InstanceRef(d.Ref)).Game
		t.endInstance(flow.InstanceRef(d.Ref), flow.Finished, flow.GameEnded, "", nil)
		t.stopHost(game)
	case InstanceKeepAlive:
		t.keepAliveMissed(flow.InstanceRef(d.Ref))
	case SeatHold:
		t.holdOver(flow.MembershipRef(d.Ref))
	case StudioReceivers:
		t.receiversDue()
	}
}

// leaderDue gives the lead to somebody who is there. The old leader does not get it back by coming back.
func (t *Tx) leaderDue(r flow.PartyRef) {
	p := t.Flow.Parties.Get(r)
	var old string
	for _, m := range p.Members {
		if m.Leader {
			old = m.Player
		}
	}
	t.changeParty(r, flow.LeaderChanged, old, func(p *flow.Party) {
		for i := range p.Members {
			p.Members[i].Leader = false
		}
		t.succeed(p, old)
	})
}

// readyDue makes members not ready who became so too long ago.
func (t *Tx) readyDue(r flow.PartyRef) {
	for i, m := range t.Flow.Parties.Get(r).Members {
		if m.ReadyBy != 0 && m.ReadyBy <= t.Contact {
			t.changeParty(r, flow.ReadyChanged, m.Player, func(p *flow.Party) { p.Members[i].Ready, p.Members[i].ReadyBy = false, 0 })
		}
	}
}

// ExpiryNotice is how long before its end the player of a login session is told of it.
const ExpiryNotice = time.Minute

// LoginActsAt is when something is to be done about a login session that shows no sign of life.
func LoginActsAt(l *flow.Login) domain.ContactTime {
	if l.State == flow.LoginLive && !l.Warned {
		return l.ExpireBy.Add(-ExpiryNotice)
	}
	return l.ExpireBy
}

// loginDue ends a login session without a sign of life, after a notice. One whose client is here gets more time; one that
// was replaced is forgotten.
func (t *Tx) loginDue(r flow.LoginRef) {
	t.Cause = "SessionExpired"
	l := *t.Flow.Logins.Get(r)
	player, _ := t.Flow.Player(l.Player)
	switch {
	case l.State != flow.LoginLive:
		t.Emit(&LoginRemoved{l.ID})
	case t.Flow.Players.Get(player).Presence == flow.Online:
		l.ExpireBy, l.Warned = t.Contact.Add(t.Config.Sessions.IdleExpiry), false
		t.Emit(&LoginChanged{l})
	case !l.Warned && l.ExpireBy > t.Contact:
		l.Warned = true
		t.Emit(&LoginChanged{l})
		t.tellPlayers(flow.OnSessionExpiring, flow.Message{Deadline: t.WallTime(l.ExpireBy)}, l.Player)
	default:
		t.endLogin(player)
	}
}

// wallDue forgets what nobody will ask for.
func (t *Tx) wallDue(d kernel.Deadline) {
	f := t.Flow
	switch d.Kind {
	case InstanceForget:
		t.Emit(&GameInstanceForgotten{f.Instances.Get(flow.InstanceRef(d.Ref)).ID})
	case LoginTicketAge:
		t.Emit(&LoginTicketRemoved{f.Tickets.Get(flow.LoginTicketRef(d.Ref)).Hash})
	case PlayerAge:
		t.playerAged(flow.PlayerRef(d.Ref))
	case QueueEstimate:
		t.Cause = "Estimate"
		t.tellEstimates(flow.QueueRef(d.Ref))
	case QueueDrain:
		t.drainQueue(flow.QueueRef(d.Ref))
	case PlayerUnlock:
		t.Cause = "LockOver"
		t.changePlayer(flow.PlayerRef(d.Ref), func(*PlayerChanged) {}) // who may search now hears of it
	}
}

// playerAged forgets the oldest thing that is remembered of a player who is away.
func (t *Tx) playerAged(r flow.PlayerRef) {
	p := t.Flow.Players.Get(r)
	switch events := p.Outbox(); {
	case len(events) > 0 && events[len(events)-1].At.Add(outboxKept) <= t.Now:
		t.Emit(&EventsTrimmed{p.ID, p.Seq + 1})
	case p.LastGame != nil && p.LastGame.Ended.Add(lastGameKept) <= t.Now:
		t.changePlayer(r, func(e *PlayerChanged) { e.LastGame = nil })
	default:
		for _, x := range t.Flow.InvitesTo(p.ID) {
			t.Emit(&InviteRemoved{t.Flow.Invites.Get(x).ID})
			return // and the rest at the next look
		}
		t.Emit(&PlayerForgotten{p.ID})
	}
}

// Resume gives every player who was online when the service went down the time to come back.
func (t *Tx) Resume(down domain.Time, then domain.ContactTime) {
	if t.Flow.Players.Len() > 0 {
		t.Emit(&FlowResumed{PresenceBy: then.Add(t.Config.Sessions.RestartGrace), Now: then, Down: max(int64(down), 0)})
	}
}
