package cell

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// flowDue ends what a deadline of player flow waits for. It always moves or clears the deadline.
func (t *tx) flowDue(d deadline) {
	f := t.c.flow
	switch d.kind {
	case playerPresence:
		t.flow.cause = "PresenceLost"
		t.goOffline(d.ref)
	case partyRemoval:
		t.flow.cause = "OfflineRemoval"
		e := presenceOf(f.Players.Get(d.ref))
		e.RemoveBy = 0
		t.emit(e)
		t.leaveParty(d.ref, flow.WentOffline)
	case queueRemoval:
		t.flow.cause = "OfflineGrace"
		e := presenceOf(f.Players.Get(d.ref))
		e.LeaveQueueBy = 0
		t.emit(e)
		if party, ok := f.Party(f.Players.Get(d.ref).Keys.Party); ok && f.Parties.Get(party).Search != nil {
			t.endSearch(party, flow.OnLeftMatchmaking, flow.MemberOffline, e.Player)
		}
	case partyLeader:
		t.flow.cause = "LeaderGrace"
		t.leaderDue(d.ref)
	case partyStale:
		t.flow.cause = "StaleExpiration"
		t.shutDownParty(d.ref, flow.PartyExpired)
	case partyReady:
		t.flow.cause = "ReadyTimeout"
		t.readyDue(d.ref)
	case inviteExpiry:
		t.inviteDue(d.ref)
	case loginExpiry:
		t.loginDue(d.ref)
	case instanceAllocation:
		t.failAllocation(d.ref, flow.AllocationTimeout)
	case instanceAbsolute:
		t.flow.cause = "AbsoluteTimeout"
		game := f.Instances.Get(d.ref).Game
		t.endInstance(d.ref, flow.AbsoluteTimeout, flow.AbsoluteTimeout, "", nil)
		t.stopHost(game)
	case instanceEnding:
		t.flow.cause = "EndingGrace"
		t.endInstance(d.ref, flow.Terminated, flow.GameTerminated, "", nil)
	case instanceEmpty:
		t.flow.cause = "EmptyTimeout"
		game := f.Instances.Get(d.ref).Game
		t.endInstance(d.ref, flow.Finished, flow.GameEnded, "", nil)
		t.stopHost(game)
	case instanceKeepAlive:
		t.keepAliveMissed(d.ref)
	case seatHold:
		t.holdOver(d.ref)
	case studioReceivers:
		t.receiversDue()
	}
}

// leaderDue gives the lead to somebody who is there. The old leader does not get it back by coming back.
func (t *tx) leaderDue(r flow.Ref) {
	p := t.c.flow.Parties.Get(r)
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
func (t *tx) readyDue(r flow.Ref) {
	for i, m := range t.c.flow.Parties.Get(r).Members {
		if m.ReadyBy != 0 && m.ReadyBy <= t.contact {
			t.changeParty(r, flow.ReadyChanged, m.Player, func(p *flow.Party) { p.Members[i].Ready, p.Members[i].ReadyBy = false, 0 })
		}
	}
}

// expiryNotice is how long before its end the player of a login session is told of it.
const expiryNotice = time.Minute

// loginActsAt is when something is to be done about a login session that shows no sign of life.
func loginActsAt(l *flow.Login) domain.ContactTime {
	if l.State == flow.LoginLive && !l.Warned {
		return l.ExpireBy.Add(-expiryNotice)
	}
	return l.ExpireBy
}

// loginDue ends a login session without a sign of life, after a notice. One whose client is here gets more time; one that
// was replaced is forgotten.
func (t *tx) loginDue(r flow.Ref) {
	t.flow.cause = "SessionExpired"
	l := *t.c.flow.Logins.Get(r)
	player, _ := t.c.flow.Player(l.Player)
	switch {
	case l.State != flow.LoginLive:
		t.emit(&LoginRemoved{l.ID})
	case t.c.flow.Players.Get(player).Presence == flow.Online:
		l.ExpireBy, l.Warned = t.contact.Add(t.c.flowConfig.Sessions.IdleExpiry), false
		t.emit(&LoginChanged{l})
	case !l.Warned && l.ExpireBy > t.contact:
		l.Warned = true
		t.emit(&LoginChanged{l})
		t.tellPlayers(flow.OnSessionExpiring, flow.Message{Deadline: t.c.wall(l.ExpireBy)}, l.Player)
	default:
		t.endLogin(player)
	}
}

// flowWallDue forgets what nobody will ask for.
func (t *tx) flowWallDue(d deadline) {
	f := t.c.flow
	switch d.kind {
	case instanceForget:
		t.emit(&GameInstanceForgotten{f.Instances.Get(d.ref).ID})
	case loginTicketAge:
		t.emit(&LoginTicketRemoved{f.Tickets.Get(d.ref).Hash})
	case playerAge:
		t.playerAged(d.ref)
	case queueEstimate:
		t.flow.cause = "Estimate"
		t.tellEstimates(d.ref)
	case queueDrain:
		t.drainQueue(d.ref)
	case playerUnlock:
		t.flow.cause = "LockOver"
		t.changePlayer(d.ref, func(*PlayerChanged) {}) // who may search now hears of it
	}
}

// playerAged forgets the oldest thing that is remembered of a player who is away.
func (t *tx) playerAged(r flow.Ref) {
	p := t.c.flow.Players.Get(r)
	switch events := p.Outbox(); {
	case len(events) > 0 && events[len(events)-1].At.Add(outboxKept) <= t.now:
		t.emit(&EventsTrimmed{p.ID, p.Seq + 1})
	case p.LastGame != nil && p.LastGame.Ended.Add(lastGameKept) <= t.now:
		t.changePlayer(r, func(e *PlayerChanged) { e.LastGame = nil })
	default:
		for _, x := range t.c.flow.InvitesTo(p.ID) {
			t.emit(&InviteRemoved{t.c.flow.Invites.Get(x).ID})
			return // and the rest at the next look
		}
		t.emit(&PlayerForgotten{p.ID})
	}
}

// flowResumed gives everybody who was online when the service went down the time to come back.
func (t *tx) flowResumed(down int64) {
	if t.c.flow.Players.Len() > 0 {
		t.emit(&FlowResumed{PresenceBy: t.contact.Add(t.c.flowConfig.Sessions.RestartGrace), Now: t.contact, Down: max(down, 0)})
	}
}
