package objects

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// Translator converts the state of players to objects of the API.
type Translator struct {
	// Sign makes the connection token of a player for a reservation.
	Sign func(player string, host *flow.Host) string
}

// StandOf returns the phase and the keys of a player.
func StandOf(s flow.Record) Stand {
	return Stand{Rev: s.Rev, Seq: s.Seq, Phase: s.Keys.Phase().String(), Keys: KeysOf(s.Keys)}
}

// KeysOf returns the keys of a player. The key of what a player does not have is empty.
func KeysOf(k flow.Keys) Keys {
	return Keys{PartyID: ID(k.Party), MatchmakingID: ID(k.Ticket), GameInstanceID: ID(k.Game)}
}

// Snapshot returns the complete state for a player's client.
func (t Translator) Snapshot(s *playerflow.FlowSnapshot, now domain.Time) FlowSnapshot {
	x := FlowSnapshot{
		PlayerID: s.Player, Rev: s.Record.Rev, Seq: s.Record.Seq, ServerTime: Stamp(now),
		Phase: s.Record.Keys.Phase().String(), Keys: KeysOf(s.Record.Keys), Invites: []Invite{}, Locks: []Lock{},
		AllowedActions: s.Allowed.Names(),
	}
	if !s.Login.ID.IsZero() {
		x.Session = &Session{SessionID: ID(s.Login.ID), Epoch: s.Login.Epoch, DeviceLabel: s.Login.Device, ExpiresAt: Stamp(s.ExpiresAt), Insecure: s.Login.Insecure}
	}
	if s.Party != nil {
		x.Party = PartyOf(s.Party)
	}
	if s.Search != nil {
		x.Ticket = TicketOf(s.Search)
	}
	if s.Game != nil {
		x.GameInstance = t.Game(s.Player, s.Game)
	}
	for i := range s.Invites {
		x.Invites = append(x.Invites, *InviteOf(&s.Invites[i]))
	}
	for i := range s.Locks {
		x.Locks = append(x.Locks, LockOf(&s.Locks[i]))
	}
	if l := s.LastGame; l != nil {
		x.LastGame = &LastGame{
			GameInstanceID: ID(l.Instance), EndReason: l.EndReason.String(), MembershipEndReason: l.Membership.String(),
			EndedAt: Stamp(l.Ended), Result: Object(l.Result),
		}
	}
	for _, f := range s.Foreign {
		x.ForeignSessions = append(x.ForeignSessions, ForeignSession{ID(f.ID), GameSessionARN(f.Region, string(f.GameID)), f.Status.String()})
	}
	return x
}

// SnapshotForOthers returns the snapshot without the connection token, which admits its bearer to a game.
func (t Translator) SnapshotForOthers(s *playerflow.FlowSnapshot, now domain.Time) FlowSnapshot {
	x := t.Snapshot(s, now)
	if x.GameInstance != nil && x.GameInstance.Host != nil {
		x.GameInstance.Host.ConnectionToken = ""
	}
	return x
}

// PartyOf returns a party as its members see it; nil for nil.
func PartyOf(p *flow.PartyView) *Party {
	if p == nil {
		return nil
	}
	x := &Party{
		PartyID: ID(p.ID), Rev: p.Rev, LeaderIDs: []string{}, MaxMembers: p.MembersMax, Joinability: p.Joinability.String(),
		InviteCode: p.Code, Queue: p.Queue, Regions: OrEmpty(p.Regions), Attributes: Object(p.Attributes), Members: []Member{},
	}
	for i, m := range p.Members {
		person := p.People[i]
		if m.Leader {
			x.LeaderIDs = append(x.LeaderIDs, m.Player)
		}
		latencies := make(map[string]int32, len(person.Latencies))
		for _, l := range person.Latencies {
			latencies[l.Region] = l.Milliseconds
		}
		x.Members = append(x.Members, Member{
			PlayerID: m.Player, DisplayName: person.DisplayName, JoinedAt: Stamp(m.Joined), Online: person.Online,
			OfflineSince: Stamp(person.OfflineSince), Ready: m.Ready, Leader: m.Leader, ClientVersion: person.ClientVersion,
			Phase: person.Phase.String(), Attributes: Object(person.Attributes), LatencyMS: latencies,
		})
	}
	return x
}

// OrEmpty returns a list that JSON writes as [] instead of null.
func OrEmpty(all []string) []string {
	if all == nil {
		return []string{}
	}
	return all
}

// TicketOf returns a search as its players see it; nil for nil.
func TicketOf(s *flow.Search) *Ticket {
	if s == nil {
		return nil
	}
	x := &Ticket{
		MatchmakingID: ID(s.Ticket), Queue: s.Queue, Status: s.Status.String(), EnteredAt: Stamp(s.Entered), ExpiresAt: Stamp(s.Expires),
		EstimatedWaitMS: s.EstimateMS, HeldBy: OrEmpty(s.HeldBy),
	}
	if s.Status == flow.RequiresAcceptance {
		x.Acceptance = &Acceptance{MatchID: s.Match.String(), Deadline: Stamp(s.AcceptBy), Accepted: OrEmpty(s.Accepted), Pending: OrEmpty(s.Pending)}
	}
	return x
}

// Game returns a game instance as one of its players sees it.
func (t Translator) Game(player string, g *playerflow.GameView) *GameInstance {
	m := &g.Membership
	x := &GameInstance{
		GameInstanceID: ID(g.ID), Status: g.Status.String(), Reconnect: g.Rules.Reconnect.String(), CreatedAt: Stamp(g.Created), Queue: g.Queue,
		MatchID: g.Match, Team: m.Team, MembersCount: g.MembersCount, HeldSeats: g.HeldSeats, HostSuspect: g.Suspect != 0, Attributes: Object(g.Attributes),
		Membership: Membership{
			Status: m.Status.String(), Attempt: m.Attempt, ReservationExpiresAt: Stamp(g.ReserveUntil), ReconnectDeadline: Stamp(g.HoldUntil),
			Disconnects: m.Disconnects, CanDecline: g.CanDecline, CanLeave: g.CanLeave,
		},
	}
	if g.Host != nil {
		x.Host = t.Host(player, g.Host)
	}
	return x
}

// Host returns the address and credentials with which a player reaches a game server.
func (t Translator) Host(player string, h *flow.Host) *HostConnectionDetails {
	return &HostConnectionDetails{
		GameInstanceID: ID(h.Instance), GameSessionID: GameSessionARN(h.Region, h.GameSession),
		Host:            Host{IPAddress: h.IPAddress, DNSName: h.DNSName, Port: h.Port, TLS: h.TLS},
		PlayerSessionID: ID(h.Session), ConnectionToken: t.Sign(player, h), ReservationExpiresAt: Stamp(h.ReserveBy),
		Attempt: h.Attempt, HostSuspect: h.Suspect,
	}
}

// InviteOf returns an invite as its two players see it.
func InviteOf(x *flow.InviteView) *Invite {
	return &Invite{
		InviteID: ID(x.ID), PartyID: ID(x.Party), FromPlayerID: x.From, ToPlayerID: x.To, CreatedAt: Stamp(x.Created), ExpiresAt: Stamp(x.Expires),
	}
}

// LockOf returns a penalty as its player sees it.
func LockOf(p *flow.Penalty) Lock {
	return Lock{Kind: p.Kind.String(), Until: Stamp(p.Until), Level: p.Step(), Reason: p.Reason.String(), GameInstanceID: ID(p.Instance)}
}
