package cell

import (
	"slices"
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
	over := flow.NoReason
	switch {
	case rules.Reconnect == flow.ReconnectOff:
		over = flow.Disconnected
	case rules.Reconnect == flow.ReconnectOptional && rules.DisconnectsMax > 0 && lost > rules.DisconnectsMax:
		over = flow.TooManyDisconnects
	}
	if over != flow.NoReason {
		t.changeMembership(r, func(m *flow.Membership) { m.Disconnects, m.LostAt = lost, t.now })
		t.excuseMany(r)
		t.endMembership(r, over)
		t.noteLoss(m.InstanceRef(), m.Player)
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
	t.excuseMany(r)
	t.tellReconnect(r)
}

// excuseMany makes it no offence to have lost the connection when half of the players lost theirs at the same time, as the member
// r does now. Of those whose seat was lost with it the penalty is taken back.
func (t *tx) excuseMany(r flow.Ref) {
	instance := t.c.flow.Memberships.Get(r).InstanceRef()
	x := t.c.flow.Instances.Get(instance)
	var together []flow.Ref
	members, gone := x.Members(), t.recent(x.Lost)
	for _, ref := range members {
		m := t.c.flow.Memberships.Get(ref)
		if m.LostAt != 0 && t.now.Sub(m.LostAt) <= t.c.flowConfig.Games.LossesTogether && (m.Status != flow.MemberActive || ref == r) {
			together = append(together, ref)
		}
	}
	if n := len(together) + len(gone); n < 2 || 2*n < len(members)+len(gone) {
		return
	}
	for _, ref := range together {
		if !t.c.flow.Memberships.Get(ref).Excused {
			t.changeMembership(ref, func(m *flow.Membership) { m.Excused = true })
		}
	}
	id := x.ID
	for _, l := range gone {
		t.pardon(l, id)
	}
}

// recent are the losses that count as one with a loss now.
func (t *tx) recent(all []flow.Loss) []flow.Loss {
	return slices.DeleteFunc(slices.Clone(all), func(l flow.Loss) bool { return t.now.Sub(l.At) > t.c.flowConfig.Games.LossesTogether })
}

// noteLoss remembers for a while who was in a game until the connection was lost.
func (t *tx) noteLoss(r flow.Ref, player string) {
	t.changeInstance(r, func(x *flow.Instance) { x.Lost = append(t.recent(x.Lost), flow.Loss{Player: player, At: t.now}) })
}

// pardon takes the penalty for a loss back.
func (t *tx) pardon(l flow.Loss, instance domain.UUID) {
	r, ok := t.c.flow.Player(l.Player)
	if !ok {
		return
	}
	i := slices.IndexFunc(t.c.flow.Players.Get(r).Penalties, func(p flow.Penalty) bool {
		return p.Kind == flow.Leave && p.Since == l.At && p.Instance == instance
	})
	if i >= 0 {
		t.liftPenalty(r, i)
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
