package playerapi

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
)

// stamp is how an instant is written: UTC with milliseconds; empty when there is none.
func stamp(t domain.Time) string {
	if t == 0 {
		return ""
	}
	return t.Std().Format("2006-01-02T15:04:05.000Z")
}

// id writes an identifier; empty when there is none.
func id(prefix string, u domain.UUID) string {
	if u.IsZero() {
		return ""
	}
	return prefix + u.String()
}

func partyID(u domain.UUID) string         { return id("pty-", u) }
func inviteID(u domain.UUID) string        { return id("inv-", u) }
func ticketID(u domain.UUID) string        { return id("mm-", u) }
func gameID(u domain.UUID) string          { return id("gi-", u) }
func sessionID(u domain.UUID) string       { return id("fs-", u) }
func playerSessionID(u domain.UUID) string { return id("psess-", u) }

// parseID reads an identifier.
func parseID(field, prefix, text string) (domain.UUID, error) {
	if rest, ok := strings.CutPrefix(text, prefix); ok {
		if u, ok := domain.ParseUUID(rest); ok {
			return u, nil
		}
	}
	return domain.UUID{}, refusal(flow.InvalidArgument, "%s: %.60q, want %s and a UUID", field, text, prefix)
}

// gameSessionARN is the name by which game servers know their game session.
func gameSessionARN(region, game string) string {
	if game == "" {
		return ""
	}
	return "arn:aws:gamelift:" + region + "::gamesession/" + game
}

func standOf(s flow.Stand) Stand {
	return Stand{Rev: s.Rev, Seq: s.Seq, Phase: s.Keys.Phase().String(), Keys: keysOf(s.Keys)}
}

func keysOf(k flow.Keys) Keys {
	return Keys{PartyID: partyID(k.Party), MatchmakingID: ticketID(k.Ticket), GameInstanceID: gameID(k.Game)}
}

// snapshotOf translates everything about a player.
func (d *Door) snapshotOf(s *cell.FlowSnapshot) FlowSnapshot {
	x := FlowSnapshot{
		PlayerID: s.Player, Rev: s.Stand.Rev, Seq: s.Stand.Seq, ServerTime: stamp(domain.TimeOf(d.engine.Now())),
		Phase: s.Stand.Keys.Phase().String(), Keys: keysOf(s.Stand.Keys), Invites: []Invite{}, Locks: []Lock{},
		AllowedActions: s.Allowed.Names(),
	}
	if !s.Login.ID.IsZero() {
		x.Session = &Session{SessionID: sessionID(s.Login.ID), Epoch: s.Login.Epoch, DeviceLabel: s.Login.Device, ExpiresAt: stamp(s.ExpiresAt), Insecure: s.Login.Insecure}
	}
	if s.Party != nil {
		x.Party = partyOf(s.Party)
	}
	if s.Search != nil {
		x.Ticket = ticketOf(s.Search)
	}
	if s.Game != nil {
		x.GameInstance = d.gameOf(s.Player, s.Game)
	}
	for i := range s.Invites {
		x.Invites = append(x.Invites, *inviteOf(&s.Invites[i]))
	}
	for i := range s.Locks {
		x.Locks = append(x.Locks, lockOf(&s.Locks[i]))
	}
	if l := s.LastGame; l != nil {
		x.LastGame = &LastGame{
			GameInstanceID: gameID(l.Instance), EndReason: l.EndReason.String(), MembershipEndReason: l.Membership.String(),
			EndedAt: stamp(l.Ended), Result: Object(l.Result),
		}
	}
	for _, f := range s.Foreign {
		x.ForeignSessions = append(x.ForeignSessions, ForeignSession{playerSessionID(f.ID), gameSessionARN(f.Region, string(f.GameID)), f.Status.String()})
	}
	return x
}

func partyOf(p *flow.PartyView) *Party {
	if p == nil {
		return nil
	}
	x := &Party{
		PartyID: partyID(p.ID), Rev: p.Rev, LeaderIDs: []string{}, MaxMembers: p.MembersMax, Joinability: p.Joinability.String(),
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
			PlayerID: m.Player, DisplayName: person.DisplayName, JoinedAt: stamp(m.Joined), Online: person.Online,
			OfflineSince: stamp(person.OfflineSince), Ready: m.Ready, Leader: m.Leader, ClientVersion: person.ClientVersion,
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
		MatchmakingID: ticketID(s.Ticket), Queue: s.Queue, Status: s.Status.String(), EnteredAt: stamp(s.Entered), ExpiresAt: stamp(s.Expires),
		EstimatedWaitMS: s.EstimateMS, HeldBy: orEmpty(s.HeldBy),
	}
	if s.Status == flow.RequiresAcceptance {
		x.Acceptance = &Acceptance{MatchID: id("", s.Match), Deadline: stamp(s.AcceptBy), Accepted: orEmpty(s.Accepted), Pending: orEmpty(s.Pending)}
	}
	return x
}

func (d *Door) gameOf(player string, g *cell.GameView) *GameInstance {
	m := &g.Membership
	x := &GameInstance{
		GameInstanceID: gameID(g.ID), Status: g.Status.String(), Reconnect: g.Rules.Reconnect.String(), CreatedAt: stamp(g.Created), Queue: g.Queue,
		MatchID: g.Match, Team: m.Team, MembersCount: g.MembersCount, HeldSeats: g.HeldSeats, HostSuspect: g.Suspect != 0, Attributes: Object(g.Attributes),
		Membership: Membership{
			Status: m.Status.String(), Attempt: m.Attempt, ReservationExpiresAt: stamp(g.ReserveUntil), ReconnectDeadline: stamp(g.HoldUntil),
			Disconnects: m.Disconnects, CanDecline: g.CanDecline, CanLeave: g.CanLeave,
		},
	}
	if g.Host != nil {
		x.Host = d.hostOf(player, g.Host)
	}
	return x
}

func (d *Door) hostOf(player string, h *flow.Host) *HostConnectionDetails {
	return &HostConnectionDetails{
		GameInstanceID: gameID(h.Instance), GameSessionID: gameSessionARN(h.Region, h.GameSession),
		Host:            Host{IPAddress: h.IPAddress, DNSName: h.DNSName, Port: h.Port, TLS: h.TLS},
		PlayerSessionID: playerSessionID(h.Session), ConnectionToken: d.tokens.sign(player, h), ReservationExpiresAt: stamp(h.ReserveBy),
		Attempt: h.Attempt, HostSuspect: h.Suspect,
	}
}

func inviteOf(x *flow.InviteView) *Invite {
	return &Invite{
		InviteID: inviteID(x.ID), PartyID: partyID(x.Party), FromPlayerID: x.From, ToPlayerID: x.To, CreatedAt: stamp(x.Created), ExpiresAt: stamp(x.Expires),
	}
}

func lockOf(p *flow.Penalty) Lock {
	return Lock{Kind: p.Kind.String(), Until: stamp(p.Until), Level: p.Step(), Reason: p.Reason.String(), GameInstanceID: gameID(p.Instance)}
}

// joinabilityOf reads the name; 0 for none.
func joinabilityOf(name string) flow.Joinability {
	all := []flow.Joinability{flow.Open, flow.InviteOnly, flow.Closed}
	if i := slices.IndexFunc(all, func(j flow.Joinability) bool { return j.String() == name }); i >= 0 {
		return all[i]
	}
	return 0
}
