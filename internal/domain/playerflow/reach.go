package playerflow

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/session"
)

// reach is how a member can reach the game server.
type reach struct {
	member flow.MembershipRef
	open   domain.PlayerSessionID // the reserved player session, if any
	again  bool                   // open can still be used for long enough
	lost   bool                   // the seat was not held, and no other one is free
}

// mayReach checks that a member can be told how to reach the game server.
func (t *Memberships) mayReach(r flow.PlayerRef, instance flow.InstanceID) (way reach, err error) {
	way.member, err = t.of(r, instance)
	if err != nil {
		return way, err
	}
	ref := way.member
	p := t.Flow.Players.Get(r)
	m := *t.Flow.Memberships.Get(ref)
	x := t.Flow.Instances.Get(m.InstanceRef())
	switch {
	case m.Status == flow.MemberPending:
		return way, flow.Refuse(flow.Refusal{Code: flow.HostNotReady}, "game instance %s has no host that takes players yet", x.ID)
	case x.Status == flow.InstanceEnding:
		return way, flow.Refuse(flow.Refusal{Code: flow.GameIsEnding}, "game instance %s is about to end", x.ID)
	case m.Status == flow.MemberActive && x.Rules.DenyTakeover:
		return way, flow.Refuse(flow.Refusal{Code: flow.NotDisconnected}, "player %s is connected to the game", p.ID)
	}
	way.open = m.Session
	if m.Status == flow.MemberActive {
		way.open = m.Next
	}
	way.again = t.stillGood(way.open, x) && m.Epoch == p.Epoch && t.tokenGood(&m, x)
	if !way.again && m.Seat == 0 && !t.seatedNow(&m) {
		g, _ := t.hosting.FindGame(session.ID(x.Game))
		game := t.hosting.Game(g)
		way.lost = game.SeatsHeld >= game.PlayersMax
	}
	return way, nil
}

// connectionDetails returns the connection details of a member, with a reservation that is valid for long enough. If it returns neither a
// host nor an error, the seat is lost, and the membership has ended.
func (t *Memberships) connectionDetails(r flow.PlayerRef, instance flow.InstanceID, data *string) (*flow.Host, error) {
	way, err := t.mayReach(r, instance)
	switch {
	case err != nil:
		return nil, err
	case way.again:
		t.tellHost(way.member, flow.Resent)
	case way.lost:
		t.end(way.member, flow.SlotLost)
		return nil, nil
	default:
		if data != nil && *data != t.Flow.Memberships.Get(way.member).Data {
			t.changeMembership(way.member, func(m *flow.Membership) { m.Data = *data })
		}
		t.makeReservation(way.member, way.open, t.Flow.Players.Get(r).Epoch)
	}
	return t.HostOf(t.Flow.Memberships.Get(way.member)), nil
}

// stillGood reports whether a reservation is open with enough time left to connect.
func (t *Memberships) stillGood(id domain.PlayerSessionID, x *flow.Instance) bool {
	r, ok := t.hosting.FindPlayer(id)
	if !ok {
		return false
	}
	p := t.hosting.PlayerSession(r)
	return p.Status == session.Reserved && p.ReserveBy >= t.Contact.Add(t.leastLeft(x))
}

// leastLeft returns the least time that a reservation must have left when it is given to a client.
func (t *Memberships) leastLeft(x *flow.Instance) time.Duration {
	return min(t.Config.Games.MinLeft, x.Rules.Reservation/2)
}

// tokenGood reports whether the token of the latest reservation is valid for long enough. Downtime extends a reservation, but not the
// token whose hash the game server has.
func (t *Memberships) tokenGood(m *flow.Membership, x *flow.Instance) bool {
	return m.TokenUntil == 0 || m.TokenUntil >= t.Now.Add(t.leastLeft(x))
}

// seatedNow reports whether a player session of the membership occupies a seat.
func (t *Memberships) seatedNow(m *flow.Membership) bool {
	for _, id := range []domain.PlayerSessionID{m.Session, m.Next} {
		if r, ok := t.hosting.FindPlayer(id); ok && t.hosting.PlayerSession(r).Status.Live() {
			return true
		}
	}
	return false
}

// makeReservation gives a member a new player session, on the member's seat if there is one, and voids an open one.
func (t *Memberships) makeReservation(ref flow.MembershipRef, open domain.PlayerSessionID, epoch uint32) {
	takeover := t.Flow.Memberships.Get(ref).Status == flow.MemberActive
	id, old := t.reserve(ref, true), t.Flow.Memberships.Get(ref).Session
	cause := flow.Reconnected
	t.changeMembership(ref, func(m *flow.Membership) {
		m.Attempt++
		m.Epoch = epoch
		switch {
		case takeover:
			cause, m.Next = flow.Takeover, id
		default:
			m.Status, m.Session = flow.MemberReserved, id
		}
	})
	if r, ok := t.hosting.FindPlayer(open); ok && t.hosting.PlayerSession(r).Status == session.Reserved {
		t.hosting.EndSeat(open, session.TimedOut)
	}
	t.wrapData(ref)
	t.tellReservation(t.Flow.Memberships.Get(ref), id, old, takeover)
	t.tellHost(ref, cause)
}
