package playerapi

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// Translator writes the state of players as objects of the API.
type Translator struct {
	// Sign makes the connection token of a player for a reservation.
	Sign func(player string, host *flow.Host) string
}

func standOf(s flow.Stand) Stand {
	return Stand{Rev: s.Rev, Seq: s.Seq, Phase: s.Keys.Phase().String(), Keys: keysOf(s.Keys)}
}

func keysOf(k flow.Keys) Keys {
	return Keys{PartyID: objects.PartyID(k.Party), MatchmakingID: objects.TicketID(k.Ticket), GameInstanceID: objects.GameInstanceID(k.Game)}
}

// Snapshot is everything that a player's client has to know.
func (t Translator) Snapshot(s *cell.FlowSnapshot, now domain.Time) FlowSnapshot {
	x := FlowSnapshot{
		PlayerID: s.Player, Rev: s.Stand.Rev, Seq: s.Stand.Seq, ServerTime: objects.Stamp(now),
		Phase: s.Stand.Keys.Phase().String(), Keys: keysOf(s.Stand.Keys), Invites: []Invite{}, Locks: []Lock{},
		AllowedActions: s.Allowed.Names(),
	}
	if !s.Login.ID.IsZero() {
		x.Session = &Session{SessionID: objects.LoginSessionID(s.Login.ID), Epoch: s.Login.Epoch, DeviceLabel: s.Login.Device, ExpiresAt: objects.Stamp(s.ExpiresAt), Insecure: s.Login.Insecure}
	}
	if s.Party != nil {
		x.Party = partyOf(s.Party)
	}
	if s.Search != nil {
		x.Ticket = ticketOf(s.Search)
	}
	if s.Game != nil {
		x.GameInstance = t.Game(s.Player, s.Game)
	}
	for i := range s.Invites {
		x.Invites = append(x.Invites, *inviteOf(&s.Invites[i]))
	}
	for i := range s.Locks {
		x.Locks = append(x.Locks, lockOf(&s.Locks[i]))
	}
	if l := s.LastGame; l != nil {
		x.LastGame = &LastGame{
			GameInstanceID: objects.GameInstanceID(l.Instance), EndReason: l.EndReason.String(), MembershipEndReason: l.Membership.String(),
			EndedAt: objects.Stamp(l.Ended), Result: Object(l.Result),
		}
	}
	for _, f := range s.Foreign {
		x.ForeignSessions = append(x.ForeignSessions, ForeignSession{objects.PlayerSessionID(f.ID), objects.GameSessionARN(f.Region, string(f.GameID)), f.Status.String()})
	}
	return x
}

// SnapshotForOthers leaves out the connection token, which lets its bearer into a game.
func (t Translator) SnapshotForOthers(s *cell.FlowSnapshot, now domain.Time) FlowSnapshot {
	x := t.Snapshot(s, now)
	if x.GameInstance != nil && x.GameInstance.Host != nil {
		x.GameInstance.Host.ConnectionToken = ""
	}
	return x
}

func partyOf(p *flow.PartyView) *Party {
	if p == nil {
		return nil
	}
	x := &Party{
		PartyID: objects.PartyID(p.ID), Rev: p.Rev, LeaderIDs: []string{}, MaxMembers: p.MembersMax, Joinability: p.Joinability.String(),
		InviteCode: p.Code, Queue: p.Queue, Regions: orEmpty(p.Regions), Attributes: Object(p.Attributes), Members: []Member{},
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
			PlayerID: m.Player, DisplayName: person.DisplayName, JoinedAt: objects.Stamp(m.Joined), Online: person.Online,
			OfflineSince: objects.Stamp(person.OfflineSince), Ready: m.Ready, Leader: m.Leader, ClientVersion: person.ClientVersion,
			Phase: person.Phase.String(), Attributes: Object(person.Attributes), LatencyMS: latencies,
		})
	}
	return x
}

func orEmpty(all []string) []string {
	if all == nil {
		return []string{}
	}
	return all
}

func ticketOf(s *flow.Search) *Ticket {
	if s == nil {
		return nil
	}
	x := &Ticket{
		MatchmakingID: objects.TicketID(s.Ticket), Queue: s.Queue, Status: s.Status.String(), EnteredAt: objects.Stamp(s.Entered), ExpiresAt: objects.Stamp(s.Expires),
		EstimatedWaitMS: s.EstimateMS, HeldBy: orEmpty(s.HeldBy),
	}
	if s.Status == flow.RequiresAcceptance {
		x.Acceptance = &Acceptance{MatchID: objects.ID("", s.Match), Deadline: objects.Stamp(s.AcceptBy), Accepted: orEmpty(s.Accepted), Pending: orEmpty(s.Pending)}
	}
	return x
}

// Game is a game instance as one of its players sees it.
func (t Translator) Game(player string, g *cell.GameView) *GameInstance {
	m := &g.Membership
	x := &GameInstance{
		GameInstanceID: objects.GameInstanceID(g.ID), Status: g.Status.String(), Reconnect: g.Rules.Reconnect.String(), CreatedAt: objects.Stamp(g.Created), Queue: g.Queue,
		MatchID: g.Match, Team: m.Team, MembersCount: g.MembersCount, HeldSeats: g.HeldSeats, HostSuspect: g.Suspect != 0, Attributes: Object(g.Attributes),
		Membership: Membership{
			Status: m.Status.String(), Attempt: m.Attempt, ReservationExpiresAt: objects.Stamp(g.ReserveUntil), ReconnectDeadline: objects.Stamp(g.HoldUntil),
			Disconnects: m.Disconnects, CanDecline: g.CanDecline, CanLeave: g.CanLeave,
		},
	}
	if g.Host != nil {
		x.Host = t.Host(player, g.Host)
	}
	return x
}

// Host is how a player reaches a game server.
func (t Translator) Host(player string, h *flow.Host) *HostConnectionDetails {
	return &HostConnectionDetails{
		GameInstanceID: objects.GameInstanceID(h.Instance), GameSessionID: objects.GameSessionARN(h.Region, h.GameSession),
		Host:            Host{IPAddress: h.IPAddress, DNSName: h.DNSName, Port: h.Port, TLS: h.TLS},
		PlayerSessionID: objects.PlayerSessionID(h.Session), ConnectionToken: t.Sign(player, h), ReservationExpiresAt: objects.Stamp(h.ReserveBy),
		Attempt: h.Attempt, HostSuspect: h.Suspect,
	}
}

func inviteOf(x *flow.InviteView) *Invite {
	return &Invite{
		InviteID: objects.InviteID(x.ID), PartyID: objects.PartyID(x.Party), FromPlayerID: x.From, ToPlayerID: x.To, CreatedAt: objects.Stamp(x.Created), ExpiresAt: objects.Stamp(x.Expires),
	}
}

func lockOf(p *flow.Penalty) Lock {
	return Lock{Kind: p.Kind.String(), Until: objects.Stamp(p.Until), Level: p.Step(), Reason: p.Reason.String(), GameInstanceID: objects.GameInstanceID(p.Instance)}
}

// joinabilityOf reads the name; 0 for none.
func joinabilityOf(name string) flow.Joinability {
	all := []flow.Joinability{flow.Open, flow.InviteOnly, flow.Closed}
	if i := slices.IndexFunc(all, func(j flow.Joinability) bool { return j.String() == name }); i >= 0 {
		return all[i]
	}
	return 0
}
