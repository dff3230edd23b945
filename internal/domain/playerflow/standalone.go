package playerflow

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// Commit mode STANDALONE: player flow makes the placement instead of the matchmaking configuration. The matchmaker's success,
// the commit and the placement are one transaction, so no match is refused after its success, and no ticket has to be
// resubmitted. docs/spec/player-hosting.md#standalone; B157.

// takesParties reports whether parties may search in a configuration; a standalone one needs a queue that hosts its games.
func (c *State) takesParties(of *matchmaking.Configuration) bool {
	if !of.Standalone {
		return true
	}
	own := c.Config.Of(of.Name)
	return c.matchmaking.HasQueue(own.Search.PlacementQueue)
}

// StandaloneCommitted moves the parties of a match into a game instance and starts its placement. Other players of the match
// are the responsibility of the clients that submitted them.
func (t *Matches) StandaloneCommitted(match matchmaking.MatchRef) {
	x := *t.matchmaking.Match(match)
	if _, backfill := x.Backfill(); backfill {
		t.commitStandaloneBackfill(match)
		return
	}
	_, latencies := t.matchmaking.MatchedPlayers(match)
	all := t.takeMatched(match)
	if len(all) == 0 {
		return
	}
	t.Cause = "MatchCommitted"
	id, rules := flow.InstanceID(t.NewID()), t.Config.RulesOf(x.Of.Name)
	own := t.Config.Of(x.Of.Name)
	start := placement.Placement{
		ID: id.String(), Queue: own.Search.PlacementQueue, PlayersMax: x.PlayersMax, Name: x.ID,
	}
	r := t.Games.begin(flow.Instance{ID: id, Rules: rules, Queue: x.Of.Name, Match: x.ID, Placement: start.ID}, t.newMembers(all))
	ours := map[string]bool{}
	for _, ref := range t.Flow.Instances.Get(r).Members() {
		m := t.Flow.Memberships.Get(ref)
		ours[m.Player] = true
		if !rules.ManualReady {
			start.Players = append(start.Players, placement.Player{Player: m.Player, Data: m.Data, ID: domain.PlayerSessionID(t.NewID())})
		}
	}
	for _, l := range latencies {
		if ours[l.Player] {
			start.Latencies = append(start.Latencies, l)
		}
	}
	start.PlayersMax = max(x.PlayersMax, int32(len(ours)))
	start.Regions = t.advices.regions(r)
	if t.hosting.CheckPlacement(&start) != nil { // the queue was deleted while they searched
		t.Games.failToPlace(r)
		return
	}
	// The configuration's properties were checked when it was created. With the service's own, there may be more than a client may set.
	start.Properties = flowProperties(x.Of.Properties, id, rules.Reconnect, x.Of.Name)
	t.hosting.BeginPlacement(&start)
}

// commitStandaloneBackfill seats the parties of a match in the game that asked for more players, if that game belongs to
// player flow and accepts them. Otherwise their search fails, because player flow cannot seat players in a game session that
// it does not manage.
func (t *Matches) commitStandaloneBackfill(match matchmaking.MatchRef) {
	x := *t.matchmaking.Match(match)
	seat, _ := x.Backfill()
	ticket, _ := t.matchmaking.FindTicketNo(seat.Ticket)
	game := t.matchmaking.Ticket(ticket).Game
	newcomers := int32(0)
	var parties []flow.PartyRef
	t.eachSearching(match, func(x *matchmaking.Ticket, _ string, party flow.PartyRef) {
		newcomers += x.Players
		parties = append(parties, party)
	})
	if r, ok := t.Flow.InstanceOfGame(game); ok && t.Games.hasRoom(r, newcomers) == nil && t.Games.letsIn(r) {
		t.BackfillCommitted(match, session.ID(game))
		return
	}
	for _, party := range parties {
		t.searches.end(party, flow.OnMatchmakingFailed, flow.EngineFailed, "")
	}
}
