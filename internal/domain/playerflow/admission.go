package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/session"
)

// admitAll gives every pending member a reservation.
func (t *Memberships) admitAll(r flow.InstanceRef) {
	t.advices.dropAll(r)
	for _, m := range slices.Clone(t.Flow.Instances.Get(r).Members()) {
		if t.Flow.Memberships.Get(m).Status == flow.MemberPending {
			t.admit(m)
		}
	}
}

// admit gives a pending member a reservation: the placement's if it made one, else a new one.
func (t *Memberships) admit(r flow.MembershipRef) {
	m := *t.Flow.Memberships.Get(r)
	x := t.Flow.Instances.Get(m.InstanceRef())
	keep := x.Rules.Reconnect != flow.ReconnectOff && !x.Rules.NoHold
	g, _ := t.hosting.FindGame(session.ID(x.Game))
	id, ok := t.reservationIn(g, m.Player)
	if !ok {
		if game := t.hosting.Game(g); game.SeatsHeld >= game.PlayersMax {
			t.end(r, flow.SlotLost)
			return
		}
		id = t.reserve(r, false)
	}
	t.changeMembership(r, func(m *flow.Membership) {
		m.Status, m.Attempt, m.Session, m.Keep = flow.MemberReserved, 1, id, keep
		m.Epoch = t.Flow.Players.Get(m.PlayerRef()).Epoch
	})
	t.wrapData(r)
	t.tellHost(r, flow.Allocated)
}

// reservationIn finds the reservation of a player in a game session.
func (c *State) reservationIn(g session.GameRef, player string) (id domain.PlayerSessionID, ok bool) {
	c.hosting.PlayersNamed(player, func(_ session.PlayerRef, p *session.PlayerSession) bool {
		if p.Game == g && p.Status == session.Reserved {
			id, ok = p.ID, true
		}
		return !ok
	})
	return id, ok
}

// reserve creates a player session for a member, on the seat that the member already has or on a free one.
func (t *Memberships) reserve(r flow.MembershipRef, kept bool) domain.PlayerSessionID {
	m := t.Flow.Memberships.Get(r)
	x := t.Flow.Instances.Get(m.InstanceRef())
	by := t.Contact.Add(x.Rules.Reservation)
	if m.Overdue {
		by = min(by, t.lastChance(m))
	}
	id := domain.PlayerSessionID(t.NewID())
	t.hosting.Reserve(session.Reservation{
		PlayerSession: id, Game: session.ID(x.Game), Player: m.Player, Data: m.Data,
		By: by, Kept: kept,
	})
	return id
}

// lastChance returns when a member's last reservation ends after the hold has passed. A later reservation ends at the same time; otherwise
// a player could keep a seat forever by asking repeatedly. While the host is suspect, the remaining time stays constant. See holdOver.
func (t *Memberships) lastChance(m *flow.Membership) domain.ContactTime {
	by := m.HoldBy
	if by == 0 {
		by = t.Contact + domain.ContactTime(m.HoldLeft)
	}
	return max(by.Add(-holdOverdue), t.Contact)
}

// tellHost tells a member how to reach the game server.
func (t *Memberships) tellHost(r flow.MembershipRef, cause flow.Reason) {
	m := t.Flow.Memberships.Get(r)
	host := t.HostOf(m)
	t.tellPlayers(flow.OnHostConnectionDetailsReceived, flow.Message{Host: host, Instance: m.Instance, Reason: cause}, m.Player)
}

// tellReconnect tells a member that the game is still running, unless its host is about to end and admits no player.
func (t *Memberships) tellReconnect(r flow.MembershipRef) {
	m := t.Flow.Memberships.Get(r)
	x := t.Flow.Instances.Get(m.InstanceRef())
	if x.Status == flow.InstanceEnding {
		return
	}
	t.tellPlayers(flow.OnReconnectAvailable, flow.Message{
		Instance: m.Instance, Reconnect: x.Rules.Reconnect, Deadline: t.holdUntil(m), CanDecline: x.Rules.Reconnect == flow.ReconnectOptional,
		Suspect: x.Suspect != 0,
	}, m.Player)
}

// openHostOf is HostOf while the player session is reserved; a used player session admits no player.
func (c *State) openHostOf(m *flow.Membership) *flow.Host {
	host := c.HostOf(m)
	if host == nil {
		return nil
	}
	if p, _ := c.hosting.FindPlayer(host.Session); c.hosting.PlayerSession(p).Status != session.Reserved {
		return nil
	}
	return host
}

// HostOf returns how a member reaches the game server, based on the latest player session; nil if there was none yet.
func (c *State) HostOf(m *flow.Membership) *flow.Host {
	x := c.Flow.Instances.Get(m.InstanceRef())
	id := m.Session
	if !m.Next.IsZero() {
		id = m.Next
	}
	p, ok := c.hosting.FindPlayer(id)
	if !ok {
		return nil
	}
	ps := c.hosting.PlayerSession(p)
	g := c.hosting.Game(ps.Game)
	host := &flow.Host{
		Instance: x.ID, GameSession: string(g.ID), Region: g.Region, IPAddress: g.IPAddress, DNSName: g.DNSName, Port: g.Port,
		Session: ps.ID, Attempt: m.Attempt, Epoch: m.Epoch, Suspect: x.Suspect != 0, TokenUntil: m.TokenUntil,
	}
	if ps.ReserveBy != 0 {
		host.ReserveBy = c.WallTime(ps.ReserveBy)
	}
	host.TLS = c.hosting.HasCertificate(g.FleetID, g.ComputeName)
	return host
}
