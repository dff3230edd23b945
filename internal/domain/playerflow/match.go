package playerflow

import (
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/session"
)

// What the matchmaker's tickets and matches mean for the parties that they are for.

// partyOfTicket finds the party that a ticket is for.
func (t *Tx) partyOfTicket(x *matchmaking.Ticket) (flow.PartyRef, bool) {
	id := ticketUUID(x.ID)
	if id.IsZero() {
		return 0, false
	}
	return t.Flow.PartyByTicket(id)
}

// HeldBack reports whether a member who is away keeps a ticket from being matched.
func (t *Tx) HeldBack(x *matchmaking.Ticket) bool {
	r, ok := t.partyOfTicket(x)
	if !ok {
		return false
	}
	for _, m := range t.Flow.Parties.Get(r).Members {
		if t.member(m.Player).Presence != flow.Online {
			return true
		}
	}
	return false
}

// AcceptanceTimeout is how long the players of a match may take to accept it.
func (t *Tx) AcceptanceTimeout(c *matchmaking.Configuration, tickets []matchmaking.TicketRef) time.Duration {
	if t.Limits.Flow == nil {
		return c.AcceptanceTimeout
	}
	ofQueue := t.Config.Of(c.Name)
	own := ofQueue.Search.AcceptanceTimeout
	if own == 0 || !slices.ContainsFunc(tickets, func(r matchmaking.TicketRef) bool {
		_, ok := t.partyOfTicket(t.matchmaking.Ticket(r))
		return ok
	}) {
		return c.AcceptanceTimeout
	}
	return own
}

// changeSearch lets f change a copy of a party's search, and touches its members.
func (t *Tx) changeSearch(r flow.PartyRef, f func(*flow.Search)) *flow.Search {
	p := *t.Flow.Parties.Get(r)
	s := *p.Search
	f(&s)
	p.Search = &s
	t.Emit(&PartyChanged{p})
	for _, m := range p.Members {
		member, _ := t.Flow.Player(m.Player)
		t.touch(member)
	}
	return &s
}

// SearchBegun notes that the matchmaker has taken a ticket into its pool.
func (t *Tx) SearchBegun(x *matchmaking.Ticket) {
	r, ok := t.partyOfTicket(x)
	if !ok || t.Flow.Parties.Get(r).Search.Status != flow.Queued {
		return
	}
	s := t.changeSearch(r, func(s *flow.Search) { s.Status, s.EstimateMS = flow.Searching, t.estimate(s.Queue) })
	t.tellPlayers(flow.OnMatchmakingStatus, flow.Message{Ticket: s.Ticket, Search: s}, t.Flow.Parties.Get(r).Players()...)
}

// searchEndReasons is why a ticket ended, as its players are told.
var searchEndReasons = map[matchmaking.Reason]flow.Reason{
	matchmaking.AcceptanceRejected: flow.AcceptDeclined, matchmaking.AcceptanceTimedOut: flow.AcceptTimeout,
	matchmaking.RequestTimedOut: flow.SearchTimeout, matchmaking.StoppedByRequest: flow.TicketSuperseded, matchmaking.DuplicatePlayer: flow.TicketSuperseded,
}

// TicketEnded takes a party out of matchmaking whose ticket has ended without it.
func (t *Tx) TicketEnded(x *matchmaking.Ticket, why matchmaking.Reason) {
	r, ok := t.partyOfTicket(x)
	if !ok {
		return
	}
	reason, ok := searchEndReasons[why]
	if !ok {
		reason = flow.EngineFailed
	}
	var by []string
	switch why {
	case matchmaking.AcceptanceRejected:
		by = answered(x, matchmaking.Rejected)
	case matchmaking.AcceptanceTimedOut:
		by = answered(x, matchmaking.NoAnswer)
	}
	t.endSearch(r, flow.OnMatchmakingFailed, reason, strings.Join(by, ","))
	for _, player := range by {
		p, _ := t.Flow.Player(player)
		if why == matchmaking.AcceptanceTimedOut && t.Flow.Players.Get(p).Presence == flow.Unknown {
			continue // the service was down, and the player is not back yet
		}
		t.penalise(p, flow.Dodge, domain.UUID{}, reason)
	}
}

// answered are the players of a ticket who have given an answer.
func answered(x *matchmaking.Ticket, answer matchmaking.Answer) (players []string) {
	i := 0
	for id := range x.EachPlayer {
		if x.Outcome != nil && x.Outcome.Answer(i) == answer {
			players = append(players, id)
		}
		i++
	}
	return players
}

// TicketReturned notes that a party searches on: its match came to nothing without its doing.
func (t *Tx) TicketReturned(x *matchmaking.Ticket) {
	r, ok := t.partyOfTicket(x)
	if !ok || t.Flow.Parties.Get(r).Search.Status != flow.RequiresAcceptance {
		return
	}
	reason := flow.AcceptDeclined
	if x.Reason == matchmaking.ProposedMatchTimedOut {
		reason = flow.AcceptTimeout
	}
	s := t.changeSearch(r, func(s *flow.Search) {
		s.Status, s.Match, s.AcceptBy, s.Accepted, s.Pending, s.HeldBy = flow.Searching, domain.UUID{}, 0, nil, nil, nil
		s.EstimateMS = t.estimate(s.Queue)
	})
	t.tellPlayers(flow.OnMatchmakingResumed, flow.Message{Ticket: s.Ticket, Search: s, Reason: reason}, t.Flow.Parties.Get(r).Players()...)
}

// eachSearching calls f for the tickets of a match that are parties'.
func (t *Tx) eachSearching(match matchmaking.MatchRef, f func(x *matchmaking.Ticket, team string, party flow.PartyRef)) {
	for _, s := range t.matchmaking.Match(match).Seats {
		r, ok := t.matchmaking.FindTicketNo(s.Ticket)
		if !ok {
			continue
		}
		x := t.matchmaking.Ticket(r)
		if party, ok := t.partyOfTicket(x); ok {
			f(x, s.Team, party)
		}
	}
}

// MatchProposed asks the players of a match.
func (t *Tx) MatchProposed(match matchmaking.MatchRef) {
	m := t.matchmaking.Match(match)
	if m.AcceptBy == 0 {
		return
	}
	id, _ := domain.ParseUUID(m.ID)
	deadline := m.AcceptBy
	accepted, pending := t.answers(match)
	t.eachSearching(match, func(x *matchmaking.Ticket, _ string, party flow.PartyRef) {
		players := t.Flow.Parties.Get(party).Players()
		t.changeSearch(party, func(s *flow.Search) {
			s.Status, s.Match, s.AcceptBy, s.Accepted, s.Pending, s.HeldBy = flow.RequiresAcceptance, id, deadline, nil, players, nil
		})
		t.tellPlayers(flow.OnMatchFound, flow.Message{
			Ticket: ticketUUID(x.ID), Match: id.String(), Deadline: deadline, Players: accepted + pending,
		}, players...)
	})
}

// answers counts what the players of a match have said.
func (t *Tx) answers(match matchmaking.MatchRef) (accepted, pending int32) {
	for _, s := range t.matchmaking.Match(match).Seats {
		r, ok := t.matchmaking.FindTicketNo(s.Ticket)
		if !ok || s.Team == "" {
			continue
		}
		x := t.matchmaking.Ticket(r)
		yes := int32(0)
		for i := range int(x.Players) {
			if x.Outcome != nil && x.Outcome.Answer(i) == matchmaking.Accepted {
				yes++
			}
		}
		accepted += yes
		pending += x.Players - yes
	}
	return accepted, pending
}

// MatchAnswered tells the players of a match what has been said so far.
func (t *Tx) MatchAnswered(match matchmaking.MatchRef, declined bool) {
	accepted, pending := t.answers(match)
	reason := flow.NoReason
	if declined {
		reason = flow.AcceptDeclined
	}
	t.eachSearching(match, func(x *matchmaking.Ticket, _ string, party flow.PartyRef) {
		yes := answered(x, matchmaking.Accepted)
		s := t.changeSearch(party, func(s *flow.Search) {
			s.Accepted = yes
			s.Pending = slices.DeleteFunc(t.Flow.Parties.Get(party).Players(), func(id string) bool { return slices.Contains(yes, id) })
		})
		t.tellPlayers(flow.OnMatchAcceptanceChanged, flow.Message{
			Ticket: s.Ticket, AcceptedCount: accepted, PendingCount: pending, Reason: reason,
		}, t.Flow.Parties.Get(party).Players()...)
	})
}

// matched is a party's way from its search into a game.
type matched struct {
	party   flow.PartyRef
	team    string
	ticket  domain.UUID
	entered domain.Time
	players []string
}

// takeMatched takes the parties of a match out of matchmaking.
func (t *Tx) takeMatched(match matchmaking.MatchRef) (all []matched) {
	t.eachSearching(match, func(x *matchmaking.Ticket, team string, party flow.PartyRef) {
		all = append(all, matched{party, team, ticketUUID(x.ID), x.Start, t.Flow.Parties.Get(party).Players()})
	})
	for _, m := range all {
		p := *t.Flow.Parties.Get(m.party)
		p.Search = nil
		t.Emit(&PartyChanged{p})
	}
	return all
}

func (t *Tx) newMembers(all []matched) (members []newMember) {
	for _, m := range all {
		advice := t.advised(m.ticket)
		for _, player := range m.players {
			r, _ := t.Flow.Player(player)
			members = append(members, newMember{player: r, team: m.team, data: advice.Of(player).Data, ticket: m.ticket, entered: m.entered})
		}
	}
	return members
}

// MatchCommitted moves all players of a match from their tickets into a game instance, in the transaction that makes the
// match final: nobody can see one of them with the old key and another one with the new one.
func (t *Tx) MatchCommitted(match matchmaking.MatchRef) {
	x := *t.matchmaking.Match(match)
	all := t.takeMatched(match)
	if len(all) == 0 {
		return
	}
	t.Cause = "MatchCommitted"
	t.beginInstance(flow.Instance{
		ID: t.NewID(), Rules: t.Config.RulesOf(x.Of.Name), Queue: x.Of.Name, Match: x.ID, Placement: x.ID,
	}, t.newMembers(all))
}

// Newcomers are those players of a match who came of parties, before they are moved: the game session that they come
// into has one rule for all, and the studio may have said something of each.
func (t *Tx) Newcomers(match matchmaking.MatchRef, game session.ID) map[string]matchmaking.Newcomer {
	all := map[string]matchmaking.Newcomer{}
	rules := t.Config.RulesOf(t.matchmaking.Match(match).Of.Name)
	if r, ok := t.Flow.InstanceOfGame(string(game)); ok {
		rules = t.Flow.Instances.Get(r).Rules
	}
	t.eachSearching(match, func(x *matchmaking.Ticket, _ string, party flow.PartyRef) {
		advice := t.advised(ticketUUID(x.ID))
		for _, player := range t.Flow.Parties.Get(party).Players() {
			all[player] = matchmaking.Newcomer{Data: advice.Of(player).Data, Wait: rules.Reservation}
		}
	})
	return all
}

// BackfillCommitted moves the newcomers of a match into the game instance that runs already. A game session that is none of
// player flow's becomes one.
func (t *Tx) BackfillCommitted(match matchmaking.MatchRef, game session.ID) {
	x := *t.matchmaking.Match(match)
	all := t.takeMatched(match)
	if len(all) == 0 {
		return
	}
	t.Cause = "MatchCommitted"
	members := t.newMembers(all)
	r, ok := t.Flow.InstanceOfGame(string(game))
	if !ok {
		r = t.beginInstance(flow.Instance{ // whose server has asked for players, and so takes them
			ID: t.NewID(), Rules: t.Config.RulesOf(x.Of.Name), Queue: x.Of.Name, Match: x.ID, Ready: true,
		}, members)
		t.hostInstance(r, game)
		return
	}
	for _, m := range members {
		t.seatNewcomer(r, m)
	}
	if t.Flow.Instances.Get(r).Ready {
		t.settleAdvice(r)
	}
}

// MatchFailed ends the game instance of a match that came to nothing after it was final.
func (t *Tx) MatchFailed(id string) {
	if r, ok := t.Flow.InstanceOfPlacement(id); ok {
		t.failAllocation(r, flow.HostError)
	}
}

// MatchProperties are the properties of the game session of a match.
func (t *Tx) MatchProperties(x *matchmaking.Match) []session.Property {
	r, ok := t.Flow.InstanceOfPlacement(x.ID)
	if !ok {
		return x.Of.Properties
	}
	i := t.Flow.Instances.Get(r)
	return flowProperties(x.Of.Properties, i.ID, i.Rules.Reconnect, i.Queue)
}

// OwnsPlacement reports whether a game instance waits for the placement of a match: then its rules say what follows from a
// placement that fails.
func (t *Tx) OwnsPlacement(match string) bool {
	_, ok := t.Flow.InstanceOfPlacement(match)
	return ok
}
