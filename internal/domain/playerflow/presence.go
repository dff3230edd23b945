package playerflow

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// replayable reports whether a client that has the events up to a number can get all later ones, because they are still kept. A
// client without events gets everything there is, unless nothing has happened yet.
func replayable(p *flow.Player, after uint64) bool {
	return after <= p.Seq && after+1 >= p.FirstKept() && (after > 0 || p.Seq == 0)
}

// sync takes a new number for an OnSync, so that no client mistakes it for an event that it has seen. It drops the events
// before an earlier OnSync: otherwise a replay of several of them would send everything as often.
func (t *logins) sync(p *flow.Player) uint64 {
	if i := slices.IndexFunc(p.Outbox(), func(x flow.Told) bool { return x.Type == flow.OnSync }); i >= 0 {
		t.Emit(&EventsTrimmed{p.ID, p.FirstKept() + uint64(i) + 1})
	}
	number := p.Seq + 1
	t.write(flow.OnSync, "", []string{p.ID})
	return number
}

// polled keeps a player online for deadAfter from now.
func (t *logins) polled(r flow.PlayerRef, node uint32) {
	config := &t.Config.Sessions
	p := t.Flow.Players.Get(r)
	by := t.Contact.Add(config.DeadAfter)
	if p.Presence == flow.Online && p.PolledBy >= by {
		return
	}
	isNew := p.Presence != flow.Online || p.Stream == 0 && p.PolledBy == 0
	if p.Stream != 0 {
		node = p.Node
	}
	t.goOnline(r, p.Stream, node, by.Add(min(pollStep, config.DeadAfter/5)))
	if isNew {
		t.greet(r)
	}
}

// pollStep is how far a poll must extend a player's presence to be worth a journal event.
const pollStep = time.Second

// goOnline records that a player's client is online: by a stream at a node, by polls until a deadline, or both.
func (t *logins) goOnline(r flow.PlayerRef, stream uint64, node uint32, polledBy domain.ContactTime) {
	p := t.Flow.Players.Get(r)
	was := p.Presence
	t.touch(r)
	e := presenceOf(p)
	e.Presence, e.Stream, e.PresenceBy, e.PolledBy, e.OfflineSince, e.RemoveBy, e.LeaveQueueBy = flow.Online, stream, 0, polledBy, 0, 0, 0
	e.Node = node
	if stream == 0 {
		e.PresenceBy = polledBy
	}
	t.Emit(e)
	if was == flow.Offline {
		t.tellPresence(r)
	}
}

// goOffline records that a player's client is gone.
func (t *logins) goOffline(r flow.PlayerRef) {
	p := t.Flow.Players.Get(r)
	was := p.Presence
	if was == flow.Offline {
		return
	}
	t.touch(r)
	e := presenceOf(p)
	e.Presence, e.Stream, e.Node, e.PresenceBy, e.PolledBy, e.OfflineSince = flow.Offline, 0, 0, 0, 0, t.Now
	t.Emit(e)
	t.tellPresence(r)
}

// tellPresence tells the other members of the party.
func (t *logins) tellPresence(r flow.PlayerRef) {
	p := t.Flow.Players.Get(r)
	party, ok := t.Flow.Party(p.Keys.Party)
	if !ok {
		return
	}
	others := slices.DeleteFunc(t.Flow.Parties.Get(party).Players(), func(id string) bool { return id == p.ID })
	t.tellPlayers(flow.OnPartyMemberPresence, flow.Message{PartyID: p.Keys.Party, Player: p.ID, Online: p.Here()}, others...)
}

// greet offers a client that has come online the way back into its game, or takes it there (auto-reconnect).
func (t *logins) greet(r flow.PlayerRef) {
	p := t.Flow.Players.Get(r)
	if p.Membership() == 0 {
		return
	}
	ref := p.Membership()
	m := *t.Flow.Memberships.Get(ref)
	returned := m.Epoch != p.Epoch // this client has not received any details yet
	switch m.Status {
	case flow.MemberPending:
		return
	case flow.MemberReserved, flow.MemberActive: // of an earlier client, unless of this one
		if !returned {
			return
		}
	}
	way, err := t.Memberships.mayReach(r, m.Instance)
	switch {
	case err != nil:
		if away := m.Status == flow.MemberDisconnected || m.Status == flow.MemberNoShow; away {
			t.Memberships.tellReconnect(ref)
		}
	case t.Flow.Logins.Get(p.Login()).AutoReconnect:
		_, _ = t.Memberships.connectionDetails(r, m.Instance, nil) // mayReach made its checks above
	case m.Status == flow.MemberReserved && t.Memberships.stillGood(way.open, t.Flow.Instances.Get(m.InstanceRef())):
		t.Memberships.tellHost(ref, flow.Resent)
	default:
		t.Memberships.tellReconnect(ref)
	}
}
