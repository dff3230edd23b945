package playerflow

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/session"
)

// How a seat waits for its player
//
//	            accepted               connection lost                 hold over
//	RESERVED ----------------> ACTIVE ----------------> DISCONNECTED ------------> ended RECONNECT_EXPIRED
//	   |  ^                                               |     ^
//	   |  +----------- GetHostConnectionDetails ----------+     |
//	   +-- reservation over, was ACTIVE before -----------------+
//	   |                          hold over
//	   +-- never ACTIVE --> NO_SHOW --------> ended NO_SHOW      (NO_SHOW --> RESERVED as from DISCONNECTED)
//
// A membership outlives its player sessions. Session is the current one; Next takes over when it is accepted. A report about any other
// player session is late and changes nothing (ofSession; R7).
//
// HoldBy is when the hold ends. It is set once for each loss, by connectionLost or by the first reservation that expired unused, and
// cleared only by an acceptance: requests for details, logins and failed attempts do not move it. If it passes while a reservation is open,
// the hold ends right after that reservation (holdOver), and Overdue says that this reservation is the last: one for another device has the
// same end. So a player has the time of the hold and at most one reservation more (docs/spec/reconnect.md#timers, R9).
//
// While the host may be lost, HoldBy is zero and HoldLeft has the time that was left; changeMembership does that, so that a hold which
// begins meanwhile does not run either. When the host is back, the remaining time runs (R6).
//
// With Keep the session package counts the seat as held (SeatsHeld, SeatsEmpty) while no player session is on it, so hosting sells it
// to no one else (R10).

// ofSession finds the membership of a player session, if it is the current one or the one that takes over.
func (t *Memberships) ofSession(player string, id domain.PlayerSessionID) (r flow.MembershipRef, next, ok bool) {
	p, known := t.Flow.Player(player)
	if !known || t.Flow.Players.Get(p).Membership() == 0 {
		return 0, false, false
	}
	r = t.Flow.Players.Get(p).Membership()
	m := t.Flow.Memberships.Get(r)
	return r, m.Next == id, m.Next == id || m.Session == id
}

// SeatTaken records that a player has connected to the game server.
func (t *Memberships) SeatTaken(player string, id domain.PlayerSessionID) {
	r, next, ok := t.ofSession(player, id)
	if !ok {
		return
	}
	t.Cause = "PlayerAccepted"
	old := t.Flow.Memberships.Get(r).Session
	t.changeMembership(r, func(m *flow.Membership) {
		m.Status, m.Session, m.Next, m.HoldBy, m.HoldLeft, m.Overdue, m.WasActive, m.Excused = flow.MemberActive, id, domain.PlayerSessionID{}, 0, 0, false, true, false
	})
	if next {
		if p, ok := t.hosting.FindPlayer(old); ok && t.hosting.PlayerSession(p).Status.Live() {
			t.hosting.EndSeat(old, session.Completed)
		}
	}
}

// SeatCompleted records that a game server has ended a player session without a reason. The end of a player session that is not current
// says nothing about the player. last is what SeatEnding returned before.
func (t *Memberships) SeatCompleted(player string, id domain.PlayerSessionID, last bool) {
	r, next, ok := t.ofSession(player, id)
	if !ok {
		return
	}
	t.Cause = "PlayerCompleted"
	if next {
		t.changeMembership(r, func(m *flow.Membership) { m.Next = domain.PlayerSessionID{} })
		return
	}
	m := t.Flow.Memberships.Get(r)
	x := t.Flow.Instances.Get(m.InstanceRef())
	switch {
	case m.Status == flow.MemberReserved:
		t.reservationOver(r, last)
	case x.Rules.Completed == flow.CompletedLeft:
		t.end(r, flow.Left)
	case x.Rules.Completed == flow.CompletedAuto && x.Status == flow.InstanceEnding:
		t.end(r, flow.GameEnded)
	default:
		t.connectionLost(r)
	}
}

// connectionLost handles the loss of a playing member's game connection.
func (t *Memberships) connectionLost(r flow.MembershipRef) {
	m := *t.Flow.Memberships.Get(r)
	rules := t.Flow.Instances.Get(m.InstanceRef()).Rules
	lost := m.Disconnects + 1
	over := flow.NoReason
	switch {
	case rules.Reconnect == flow.ReconnectOff:
		over = flow.Disconnected
	case rules.Reconnect == flow.ReconnectOptional && rules.DisconnectsMax > 0 && lost > rules.DisconnectsMax:
		over = flow.TooManyDisconnects
	}
	if over != flow.NoReason {
		t.changeMembership(r, func(m *flow.Membership) { m.Disconnects, m.LostAt = lost, t.Now })
		t.excuseMany(r)
		t.end(r, over)
		t.noteLoss(m.InstanceRef(), m.Player)
		return
	}
	t.changeMembership(r, func(m *flow.Membership) {
		m.Status, m.Disconnects, m.LostAt = flow.MemberDisconnected, lost, t.Now
		if rules.Reconnect == flow.ReconnectOptional {
			m.HoldBy = t.Contact.Add(rules.ReconnectWindow)
		}
		if !m.Next.IsZero() { // the device that was taking over still may
			m.Status, m.Session, m.Next = flow.MemberReserved, m.Next, domain.PlayerSessionID{}
		}
	})
	t.excuseMany(r)
	t.tellReconnect(r)
}

// excuseMany excuses lost connections if at least half of the players lost theirs at about the same time as member r. Players who have returned
// since count, too, but there is nothing to excuse. It lifts the penalties of players who lost their seats that way.
func (t *Memberships) excuseMany(r flow.MembershipRef) {
	instance := t.Flow.Memberships.Get(r).InstanceRef()
	x := t.Flow.Instances.Get(instance)
	var together []flow.MembershipRef
	members, gone := x.Members(), t.recent(x.Lost)
	lost := len(gone)
	for _, ref := range members {
		m := t.Flow.Memberships.Get(ref)
		if m.LostAt == 0 || t.Now.Sub(m.LostAt) > t.Config.Games.LossesTogether {
			continue
		}
		lost++
		if m.Status != flow.MemberActive || ref == r {
			together = append(together, ref)
		}
	}
	if lost < 2 || 2*lost < len(members)+len(gone) {
		return
	}
	for _, ref := range together {
		if !t.Flow.Memberships.Get(ref).Excused {
			t.changeMembership(ref, func(m *flow.Membership) { m.Excused = true })
		}
	}
	id := x.ID
	for _, l := range gone {
		t.pardon(l, id)
	}
}

// recent returns the losses that count as simultaneous with one now.
func (t *Memberships) recent(all []flow.Loss) []flow.Loss {
	return slices.DeleteFunc(slices.Clone(all), func(l flow.Loss) bool { return t.Now.Sub(l.At) > t.Config.Games.LossesTogether })
}

// noteLoss remembers for a while that a player left the game by losing the connection.
func (t *Memberships) noteLoss(r flow.InstanceRef, player string) {
	t.changeInstance(r, func(x *flow.Instance) { x.Lost = append(t.recent(x.Lost), flow.Loss{Player: player, At: t.Now}) })
}

// pardon lifts the penalty for a loss.
func (t *Memberships) pardon(l flow.Loss, instance flow.InstanceID) {
	r, ok := t.Flow.Player(l.Player)
	if !ok {
		return
	}
	i := slices.IndexFunc(t.Flow.Players.Get(r).Penalties, func(p flow.Penalty) bool {
		return p.Kind == flow.Leave && p.Since == l.At && p.Instance == instance
	})
	if i >= 0 {
		t.penalties.lift(r, i)
	}
}

// SeatTimedOut records that a reservation has expired.
func (t *Memberships) SeatTimedOut(player string, id domain.PlayerSessionID) {
	r, next, ok := t.ofSession(player, id)
	if !ok {
		return
	}
	t.Cause = "ReservationExpired"
	if next {
		t.changeMembership(r, func(m *flow.Membership) { m.Next = domain.PlayerSessionID{} })
		return
	}
	t.reservationOver(r, false) // if it was the last one, the hold ends right after it
}

// SeatEnding reports whether the hold of a seat has passed and waits only for this player session.
func (t *Memberships) SeatEnding(player string, id domain.PlayerSessionID) bool {
	r, next, ok := t.ofSession(player, id)
	if !ok || next {
		return false
	}
	return t.Flow.Memberships.Get(r).Overdue
}

// reservationOver handles a reservation that its player did not use in time. The last one ends the membership; otherwise a player who lets
// it expire early would get another.
func (t *Memberships) reservationOver(r flow.MembershipRef, last bool) {
	m := *t.Flow.Memberships.Get(r)
	x := t.Flow.Instances.Get(m.InstanceRef())
	rules, suspect := x.Rules, x.Suspect != 0
	switch {
	case last && !suspect && m.WasActive:
		t.end(r, flow.ReconnectExpired)
		return
	case last && !suspect:
		t.end(r, flow.NoShow)
		return
	}
	if m.WasActive {
		t.changeMembership(r, func(m *flow.Membership) { m.Status = flow.MemberDisconnected })
		return
	}
	if rules.Reconnect == flow.ReconnectOff && !suspect {
		t.end(r, flow.NoShow)
		return
	}
	first := m.HoldBy == 0 && m.HoldLeft == 0
	t.changeMembership(r, func(m *flow.Membership) {
		m.Status = flow.MemberNoShow
		switch {
		case !first:
		case rules.Reconnect == flow.ReconnectOptional:
			m.HoldBy = t.Contact.Add(rules.NoShowHold)
		case rules.Reconnect == flow.ReconnectOff: // ends once the host is known to be present
			m.HoldBy = t.Contact.Add(time.Millisecond)
		}
	})
	if rules.Reconnect != flow.ReconnectOff {
		t.tellReconnect(r)
	}
}

// holdOverdue is how long after the open reservation a passed hold ends.
const holdOverdue = time.Millisecond

// holdOver ends a membership whose player has not returned in time, but not before an open reservation has ended.
func (t *Memberships) holdOver(r flow.MembershipRef) {
	t.Cause = "HoldOver"
	m := t.Flow.Memberships.Get(r)
	switch m.Status {
	case flow.MemberReserved:
		by := t.Contact
		if p, ok := t.hosting.FindPlayer(m.Session); ok {
			by = max(by, t.hosting.PlayerSession(p).ReserveBy)
		}
		t.changeMembership(r, func(m *flow.Membership) { m.HoldBy, m.Overdue = by.Add(holdOverdue), true })
	case flow.MemberDisconnected:
		t.end(r, flow.ReconnectExpired)
	case flow.MemberNoShow:
		t.end(r, flow.NoShow)
	default:
		t.changeMembership(r, func(m *flow.Membership) { m.HoldBy = 0 })
	}
}
