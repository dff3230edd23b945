package playerflow

import (
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// contactDue handles a contact deadline. It always moves or clears the deadline.
func (t *Tx) contactDue(d kernel.Deadline) {
	f := t.Flow
	switch d.Kind {
	case PlayerPresence:
		t.Cause = "PresenceLost"
		t.logins.goOffline(flow.PlayerRef(d.Ref))
	case PartyRemoval:
		t.Cause = "OfflineRemoval"
		e := presenceOf(f.Players.Get(flow.PlayerRef(d.Ref)))
		e.RemoveBy = 0
		t.Emit(e)
		t.parties.leave(flow.PlayerRef(d.Ref), flow.WentOffline)
	case QueueRemoval:
		t.Cause = "OfflineGrace"
		e := presenceOf(f.Players.Get(flow.PlayerRef(d.Ref)))
		e.LeaveQueueBy = 0
		t.Emit(e)
		if party, ok := f.Party(f.Players.Get(flow.PlayerRef(d.Ref)).Keys.Party); ok && f.Parties.Get(party).Search != nil {
			t.searches.end(party, flow.OnLeftMatchmaking, flow.MemberOffline, e.Player)
		}
	case PartyLeader:
		t.Cause = "LeaderGrace"
		t.parties.leaderDue(flow.PartyRef(d.Ref))
	case PartyStale:
		t.Cause = "StaleExpiration"
		t.parties.shutDown(flow.PartyRef(d.Ref), flow.PartyExpired)
	case PartyReady:
		t.Cause = "ReadyTimeout"
		t.parties.readyDue(flow.PartyRef(d.Ref))
	case InviteExpiry:
		t.invites.due(flow.InviteRef(d.Ref))
	case LoginExpiry:
		t.logins.due(flow.LoginRef(d.Ref))
	case InstanceAllocation:
		t.Games.fail(flow.InstanceRef(d.Ref), flow.AllocationTimeout, true)
	case InstanceAbsolute:
		t.Cause = "AbsoluteTimeout"
		game := f.Instances.Get(flow.InstanceRef(d.Ref)).Game
		t.Games.end(flow.InstanceRef(d.Ref), flow.AbsoluteTimeout, flow.AbsoluteTimeout, "", nil)
		t.Games.stopHost(game)
	case InstanceEnding:
		t.Cause = "EndingGrace"
		t.Games.end(flow.InstanceRef(d.Ref), flow.Terminated, flow.GameTerminated, "", nil)
	case InstanceEmpty:
		t.Cause = "EmptyTimeout"
		game := f.Instances.Get(flow.InstanceRef(d.Ref)).Game
		t.Games.end(flow.InstanceRef(d.Ref), flow.Finished, flow.GameEnded, "", nil)
		t.Games.stopHost(game)
	case InstanceKeepAlive:
		t.Games.keepAliveMissed(flow.InstanceRef(d.Ref))
	case SeatHold:
		t.Memberships.holdOver(flow.MembershipRef(d.Ref))
	case StudioReceivers:
		t.receiversDue()
	}
}

// wallDue handles a wall deadline; most remove a record.
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
		t.searches.tellEstimates(flow.QueueRef(d.Ref))
	case QueueDrain:
		t.searches.drain(flow.QueueRef(d.Ref))
	case PlayerUnlock:
		t.Cause = "LockOver"
		t.changePlayer(flow.PlayerRef(d.Ref), func(*PlayerChanged) {}) // the player may search again and is told so
	}
}

// playerAged removes the oldest record of an absent player.
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
			return // the others follow at later deadlines
		}
		t.Emit(&PlayerForgotten{p.ID})
	}
}

// Resume gives every player who was online when the service went down time to return, except those whose stream is still open.
func (t *Tx) Resume(r kernel.Resumption) {
	if t.Flow.Players.Len() > 0 {
		t.Emit(&FlowResumed{PresenceBy: r.Then.Add(t.Config.Sessions.RestartGrace), Now: r.Then, Down: max(int64(r.Down), 0), Held: r.Cluster, Paused: r.Paused})
	}
}
