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

// The effect of matchmaking's tickets and matches on the parties that search.

// partyOfTicket finds the party that a ticket is for.
func (t *Matches) partyOfTicket(x *matchmaking.Ticket) (flow.PartyRef, bool) {
	if x.Owner != matchmaking.PartyOwned {
		return 0, false
	}
	return t.Flow.PartyByTicket(ticketID(x))
}

// HeldBack reports whether an absent member keeps a ticket from being matched.
func (t *Matches) HeldBack(x *matchmaking.Ticket) bool {
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

// AcceptanceTimeout returns how long the players of a match have to accept it.
func (t *Matches) AcceptanceTimeout(c *matchmaking.Configuration, tickets []matchmaking.TicketRef) time.Duration {
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

// SearchBegun records that the matchmaker has added a ticket to its pool.
func (t *Matches) SearchBegun(x *matchmaking.Ticket) {
	r, ok := t.partyOfTicket(x)
	if !ok || t.Flow.Parties.Get(r).Search.Status != flow.Queued {
		return
	}
	s := t.changeSearch(r, func(s *flow.Search) { s.Status, s.EstimateMS = flow.Searching, t.searches.estimate(s.Queue) })
	t.tellPlayers(flow.OnMatchmakingStatus, flow.Message{Ticket: s.Ticket, Search: s}, t.Flow.Parties.Get(r).Players()...)
}

// searchEndReasons maps the end of a ticket to the reason that its players are told.
var searchEndReasons = map[matchmaking.Reason]flow.Reason{
	matchmaking.AcceptanceRejected: flow.AcceptDeclined, matchmaking.AcceptanceTimedOut: flow.AcceptTimeout,
	matchmaking.RequestTimedOut: flow.SearchTimeout, matchmaking.StoppedByRequest: flow.TicketSuperseded, matchmaking.DuplicatePlayer: flow.TicketSuperseded,
}

// TicketEnded takes a party out of matchmaking after matchmaking has ended its ticket.
func (t *Matches) TicketEnded(x *matchmaking.Ticket, why matchmaking.Reason) {
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
	t.searches.end(r, flow.OnMatchmakingFailed, reason, strings.Join(by, ","))
	for _, player := range by {
		p, _ := t.Flow.Player(player)
		if why == matchmaking.AcceptanceTimedOut && t.Flow.Players.Get(p).Presence == flow.Unknown {
			continue // the service was down, and the player has not returned yet
		}
		t.penalties.add(p, flow.Dodge, flow.InstanceID{}, reason)
	}
}

// answered returns the players of a ticket who gave a certain answer.
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

// TicketReturned records that a party continues to search after its match failed through no fault of its own.
func (t *Matches) TicketReturned(x *matchmaking.Ticket) {
	r, ok := t.partyOfTicket(x)
	if !ok || t.Flow.Parties.Get(r).Search.Status != flow.RequiresAcceptance {
		return
	}
	reason := flow.NoCapacity // the running game has no room for its newcomers any more, or has ended
	switch x.Reason {
	case matchmaking.ProposedMatchRejected:
		reason = flow.AcceptDeclined
	case matchmaking.ProposedMatchTimedOut:
		reason = flow.AcceptTimeout
	}
	s := t.changeSearch(r, func(s *flow.Search) {
		s.Status, s.Match, s.AcceptBy, s.Accepted, s.Pending, s.HeldBy = flow.Searching, domain.UUID{}, 0, nil, nil, nil
		s.EstimateMS = t.searches.estimate(s.Queue)
	})
	t.tellPlayers(flow.OnMatchmakingResumed, flow.Message{Ticket: s.Ticket, Search: s, Reason: reason}, t.Flow.Parties.Get(r).Players()...)
}

// eachSearching calls f for the tickets of a match that belong to parties.
func (t *Matches) eachSearching(match matchmaking.MatchRef, f func(x *matchmaking.Ticket, team string, party flow.PartyRef)) {
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

// MatchProposed asks the players of a match to accept it.
func (t *Matches) MatchProposed(match matchmaking.MatchRef) {
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
			Ticket: ticketID(x), Match: id.String(), Deadline: deadline, Players: accepted + pending,
		}, players...)
	})
}

// answers counts the answers of the players of a match.
func (t *Matches) answers(match matchmaking.MatchRef) (accepted, pending int32) {
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

// MatchAnswered tells the players of a match the answers so far.
func (t *Matches) MatchAnswered(match matchmaking.MatchRef, declined bool) {
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

// matched is a party that moves from its search into a game.
type matched struct {
	party   flow.PartyRef
	team    string
	ticket  domain.TicketID
	entered domain.Time
	players []string
}

// takeMatched takes the parties of a match out of matchmaking.
func (t *Matches) takeMatched(match matchmaking.MatchRef) (all []matched) {
	t.eachSearching(match, func(x *matchmaking.Ticket, team string, party flow.PartyRef) {
		all = append(all, matched{party, team, ticketID(x), x.Start, t.Flow.Parties.Get(party).Players()})
	})
	for _, m := range all {
		p := *t.Flow.Parties.Get(m.party)
		p.Search = nil
		t.Emit(&PartyChanged{p})
	}
	return all
}

func (t *Matches) newMembers(all []matched) (members []newMember) {
	for _, m := range all {
		advice := t.advices.of(m.ticket)
		for _, player := range m.players {
			r, _ := t.Flow.Player(player)
			members = append(members, newMember{player: r, team: m.team, data: advice.Of(player).Data, ticket: m.ticket, entered: m.entered})
		}
	}
	return members
}

// MatchCommitted moves all players of a match from their tickets into a game instance, in the transaction that makes the
// match final: no reader sees one of them with the old key and another with the new one.
func (t *Matches) MatchCommitted(match matchmaking.MatchRef) {
	x := *t.matchmaking.Match(match)
	all := t.takeMatched(match)
	if len(all) == 0 {
		return
	}
	t.Cause = "MatchCommitted"
	t.Games.begin(flow.Instance{
		ID: flow.InstanceID(t.NewID()), Rules: t.Config.RulesOf(x.Of.Name), Queue: x.Of.Name, Match: x.ID, Placement: x.ID,
	}, t.newMembers(all))
}

// Newcomers returns the players of a match who come from parties, before they are moved. Their game session has one rule for all of
// them, and the studio may have given advice about each.
func (t *Matches) Newcomers(match matchmaking.MatchRef, game session.ID) map[string]matchmaking.Newcomer {
	all := map[string]matchmaking.Newcomer{}
	rules := t.Config.RulesOf(t.matchmaking.Match(match).Of.Name)
	if r, ok := t.Flow.InstanceOfGame(string(game)); ok {
		rules = t.Flow.Instances.Get(r).Rules
	}
	t.eachSearching(match, func(x *matchmaking.Ticket, _ string, party flow.PartyRef) {
		advice := t.advices.of(ticketID(x))
		for _, player := range t.Flow.Parties.Get(party).Players() {
			all[player] = matchmaking.Newcomer{Data: advice.Of(player).Data, Wait: rules.Reservation}
		}
	})
	return all
}

// BackfillCommitted moves the newcomers of a match into the running game instance. A game session outside player flow becomes one
// of player flow.
func (t *Matches) BackfillCommitted(match matchmaking.MatchRef, game session.ID) {
	x := *t.matchmaking.Match(match)
	all := t.takeMatched(match)
	if len(all) == 0 {
		return
	}
	t.Cause = "MatchCommitted"
	members := t.newMembers(all)
	r, ok := t.Flow.InstanceOfGame(string(game))
	if !ok {
		r = t.Games.begin(flow.Instance{ // its server has asked for players, so it accepts them
			ID: flow.InstanceID(t.NewID()), Rules: t.Config.RulesOf(x.Of.Name), Queue: x.Of.Name, Match: x.ID, Ready: true,
		}, members)
		t.Games.host(r, game)
		return
	}
	for _, m := range members {
		t.Memberships.addSeated(r, m)
	}
	if t.Flow.Instances.Get(r).Ready {
		t.advices.dropAll(r)
	}
}

// MatchNotPlaced ends the game instance of a match that failed after its commit, before it was placed.
func (t *Matches) MatchNotPlaced(id string) {
	if r, ok := t.Flow.InstanceOfPlacement(id); ok {
		t.Games.failToPlace(r)
	}
}

// MatchProperties returns the properties of the game session of a match.
func (t *Matches) MatchProperties(x *matchmaking.Match) []session.Property {
	r, ok := t.Flow.InstanceOfPlacement(x.ID)
	if !ok {
		return x.Of.Properties
	}
	i := t.Flow.Instances.Get(r)
	return flowProperties(x.Of.Properties, i.ID, i.Rules.Reconnect, i.Queue)
}

// MayBeForeign refuses a call of the service API about a player who is in a party, search or game of player flow, unless laxPlayers
// allows it. Such a call could end the player's search or seat one player in two games.
func (t *Matches) MayBeForeign(field string, i int, player string) error {
	return t.mayBeIn(field, i, player, func(phase flow.Phase) bool { return phase == flow.Idle })
}

func (t *Matches) mayBeIn(field string, i int, player string, fits func(flow.Phase) bool) error {
	if t.Limits.Flow == nil || t.Config.Games.LaxPlayers {
		return nil
	}
	r, ok := t.Flow.Player(player)
	if !ok {
		return nil
	}
	if phase := t.Flow.Players.Get(r).Keys.Phase(); !fits(phase) {
		return domain.Refuse(domain.Invalid, "%s[%d]: player %s is %s in player flow, and strictPlayers is on", field, i, player, phase)
	}
	return nil
}

// MayBeBackfilled refuses a backfill that contains a searching player, because it would end that player's search.
func (t *Matches) MayBeBackfilled(field string, i int, player string) error {
	return t.mayBeIn(field, i, player, func(phase flow.Phase) bool { return phase != flow.Matchmaking })
}

// PlayerData returns the PlayerData of a matched player; empty if there is none.
func (t *Matches) PlayerData(player string) string {
	r, ok := t.Flow.Player(player)
	if !ok || t.Flow.Players.Get(r).Membership() == 0 {
		return ""
	}
	return t.Flow.Memberships.Get(t.Flow.Players.Get(r).Membership()).Data
}
