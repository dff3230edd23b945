package cell

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/session"
)

// memberOf finds the membership that a player session belongs to, if it is the current one or the one that takes over.
func (t *tx) memberOf(player string, id domain.UUID) (r flow.Ref, next, ok bool) {
	p, known := t.c.flow.Player(player)
	if !known || t.c.flow.Players.Get(p).Membership() == 0 {
		return 0, false, false
	}
	r = t.c.flow.Players.Get(p).Membership()
	m := t.c.flow.Memberships.Get(r)
	return r, m.Next == id, m.Next == id || m.Session == id
}

// playerAccepted notes that a player has connected to the game server.
func (t *tx) playerAccepted(player string, id domain.UUID) {
	r, next, ok := t.memberOf(player, id)
	if !ok {
		return
	}
	t.flow.cause = "PlayerAccepted"
	old := t.c.flow.Memberships.Get(r).Session
	t.changeMembership(r, func(m *flow.Membership) {
		m.Status, m.Session, m.Next, m.HoldBy, m.HoldLeft, m.Overdue, m.WasActive, m.Excused = flow.MemberActive, id, domain.UUID{}, 0, 0, false, true, false
	})
	if next {
		if p, ok := t.c.sessions.PlayerByID(old); ok && t.c.sessions.Players.Get(p).Status.Live() {
			t.emit(&PlayerEnded{old, session.Completed})
		}
	}
}

// playerCompleted notes that a game server has ended a player session without a reason. Of one that is not current it
// says nothing about the player. Last is what lastReservation said before.
func (t *tx) playerCompleted(player string, id domain.UUID, last bool) {
	r, next, ok := t.memberOf(player, id)
	if !ok {
		return
	}
	t.flow.cause = "PlayerCompleted"
	if next {
		t.changeMembership(r, func(m *flow.Membership) { m.Next = domain.UUID{} })
		return
	}
	m := t.c.flow.Memberships.Get(r)
	x := t.c.flow.Instances.Get(m.InstanceRef())
	switch {
	case m.Status == flow.MemberReserved:
		t.reservationOver(r, last)
	case x.Rules.Completed == flow.CompletedLeft:
		t.endMembership(r, flow.Left)
	case x.Rules.Completed == flow.CompletedAuto && x.Status == flow.InstanceEnding:
		t.endMembership(r, flow.GameEnded)
	default:
		t.connectionLost(r)
	}
}

// connectionLost is what becomes of a member who played and has lost the game connection.
func (t *tx) connectionLost(r flow.Ref) {
	m := *t.c.flow.Memberships.Get(r)
	rules := t.c.flow.Instances.Get(m.InstanceRef()).Rules
	lost := m.Disconnects + 1
	switch {
	case rules.Reconnect == flow.ReconnectOff:
		t.changeMembership(r, func(m *flow.Membership) { m.Disconnects, m.LostAt = lost, t.now })
		t.endMembership(r, flow.Disconnected)
		return
	case rules.Reconnect == flow.ReconnectOptional && rules.DisconnectsMax > 0 && lost > rules.DisconnectsMax:
		t.endMembership(r, flow.TooManyDisconnects)
		return
	}
	t.changeMembership(r, func(m *flow.Membership) {
		m.Status, m.Disconnects, m.LostAt = flow.MemberDisconnected, lost, t.now
		if rules.Reconnect == flow.ReconnectOptional {
			m.HoldBy = t.contact.Add(rules.ReconnectWindow)
		}
		if !m.Next.IsZero() { // who was about to take over still may
			m.Status, m.Session, m.Next = flow.MemberReserved, m.Next, domain.UUID{}
		}
	})
	t.excuseMany(m.InstanceRef())
	t.tellReconnect(r)
}

// excuseMany makes it no offence to have lost the connection when half of the players lost theirs at the same time.
func (t *tx) excuseMany(r flow.Ref) {
	var together []flow.Ref
	members := t.c.flow.Instances.Get(r).Members()
	for _, ref := range members {
		m := t.c.flow.Memberships.Get(ref)
		if m.LostAt != 0 && t.now.Sub(m.LostAt) <= t.c.flowConfig.Games.LossesTogether && m.Status != flow.MemberActive {
			together = append(together, ref)
		}
	}
	if len(together) < 2 || 2*len(together) < len(members) {
		return
	}
	for _, ref := range together {
		if !t.c.flow.Memberships.Get(ref).Excused {
			t.changeMembership(ref, func(m *flow.Membership) { m.Excused = true })
		}
	}
}

// playerTimedOut notes that a reservation has expired.
func (t *tx) playerTimedOut(player string, id domain.UUID) {
	r, next, ok := t.memberOf(player, id)
	if !ok {
		return
	}
	t.flow.cause = "ReservationExpired"
	if next {
		t.changeMembership(r, func(m *flow.Membership) { m.Next = domain.UUID{} })
		return
	}
	t.reservationOver(r, false) // if it was the last one, the hold ends right behind it
}

// lastReservation reports whether the hold of a seat has ended, and waits for this player session alone.
func (t *tx) lastReservation(player string, id domain.UUID) bool {
	r, next, ok := t.memberOf(player, id)
	if !ok || next {
		return false
	}
	return t.c.flow.Memberships.Get(r).Overdue
}

// reservationOver is what becomes of a member who has not come in time. The last reservation ends the membership with it, or
// whoever lets it end early would get another one.
func (t *tx) reservationOver(r flow.Ref, last bool) {
	m := *t.c.flow.Memberships.Get(r)
	x := t.c.flow.Instances.Get(m.InstanceRef())
	rules, suspect := x.Rules, x.Suspect != 0
	switch {
	case last && !suspect && m.WasActive:
		t.endMembership(r, flow.ReconnectExpired)
		return
	case last && !suspect:
		t.endMembership(r, flow.NoShow)
		return
	}
	if m.WasActive {
		t.changeMembership(r, func(m *flow.Membership) { m.Status = flow.MemberDisconnected })
		return
	}
	if rules.Reconnect == flow.ReconnectOff && !suspect {
		t.endMembership(r, flow.NoShow)
		return
	}
	first := m.HoldBy == 0 && m.HoldLeft == 0
	t.changeMembership(r, func(m *flow.Membership) {
		m.Status = flow.MemberNoShow
		switch {
		case !first:
		case rules.Reconnect == flow.ReconnectOptional:
			m.HoldBy = t.contact.Add(rules.NoShowHold)
		case rules.Reconnect == flow.ReconnectOff: // it ends once the host is known to be there
			m.HoldBy = t.contact.Add(time.Millisecond)
		}
	})
	if rules.Reconnect != flow.ReconnectOff {
		t.tellReconnect(r)
	}
}

// holdOverdue is how long a hold that is over lasts behind the reservation that was open.
const holdOverdue = time.Millisecond

// holdOver ends a membership whose player has not come back in time; not before an open reservation has ended.
func (t *tx) holdOver(r flow.Ref) {
	t.flow.cause = "HoldOver"
	m := t.c.flow.Memberships.Get(r)
	switch m.Status {
	case flow.MemberReserved:
		by := t.contact
		if p, ok := t.c.sessions.PlayerByID(m.Session); ok {
			by = max(by, t.c.sessions.Players.Get(p).ReserveBy)
		}
		t.changeMembership(r, func(m *flow.Membership) { m.HoldBy, m.Overdue = by.Add(holdOverdue), true })
	case flow.MemberDisconnected:
		t.endMembership(r, flow.ReconnectExpired)
	case flow.MemberNoShow:
		t.endMembership(r, flow.NoShow)
	default:
		t.changeMembership(r, func(m *flow.Membership) { m.HoldBy = 0 })
	}
}
