package cell

import (
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// Commit mode STANDALONE: the matchmaking configuration places nothing, player flow does. The matchmaker's success, the
// commit and the placement are one transaction, so no match is ever refused behind its success, and nobody has to be
// submitted again. docs/spec/player-hosting.md#standalone; B157.

// takesParties reports whether parties may search in a configuration: a standalone one needs a queue that hosts its games.
func (t *tx) takesParties(c *matchmaking.Configuration) bool { return t.c.takesParties(c) }

func (c *Cell) takesParties(of *matchmaking.Configuration) bool {
	if !of.Standalone {
		return true
	}
	own := c.flowConfig.Of(of.Name)
	return c.hasQueue(own.Search.PlacementQueue)
}

// commitStandalone moves the parties of a match into a game instance and starts its placement. Other players of the match
// are the matter of those who sent them.
func (t *tx) commitStandalone(match matchmaking.Ref) {
	x := *t.c.matchmaking.Matches.Get(match)
	if _, backfill := x.Backfill(); backfill {
		t.commitStandaloneBackfill(match)
		return
	}
	_, latencies := t.matchedPlayers(match)
	all := t.takeMatched(match)
	if len(all) == 0 {
		return
	}
	t.flow.cause = "MatchCommitted"
	id, rules := t.newID(), t.c.flowConfig.RulesOf(x.Of.Name)
	own := t.c.flowConfig.Of(x.Of.Name)
	start := &StartPlacement{Placement: placement.Placement{
		ID: "gi-" + id.String(), Queue: own.Search.PlacementQueue, PlayersMax: x.PlayersMax, Name: x.ID,
		Properties: flowProperties(x.Of.Properties, id, rules.Reconnect, x.Of.Name),
	}, archivedID: archivedID{ArchivedAt: t.c.forgotten}}
	r := t.beginInstance(flow.Instance{ID: id, Rules: rules, Queue: x.Of.Name, Match: x.ID, Placement: start.Placement.ID}, t.newMembers(all))
	ours := map[string]bool{}
	for _, ref := range t.c.flow.Instances.Get(r).Members() {
		m := t.c.flow.Memberships.Get(ref)
		ours[m.Player] = true
		if !rules.ManualReady {
			start.Placement.Players = append(start.Placement.Players, placement.Player{Player: m.Player, Data: m.Data, ID: t.newID()})
		}
	}
	for _, l := range latencies {
		if ours[l.Player] {
			start.Placement.Latencies = append(start.Placement.Latencies, l)
		}
	}
	start.Placement.PlayersMax = max(x.PlayersMax, int32(len(ours)))
	start.Placement.Regions = t.wantedRegions(r)
	if start.check(t) != nil { // the queue was deleted while they searched
		t.failAllocation(r, flow.HostError)
		return
	}
	start.begin(t)
}

// commitStandaloneBackfill seats the parties of a match in the game that asked for more players, if that is one of player flow
// and takes them. Whatever else the asker means by its game session, nobody here can bring them there.
func (t *tx) commitStandaloneBackfill(match matchmaking.Ref) {
	x := *t.c.matchmaking.Matches.Get(match)
	seat, _ := x.Backfill()
	ticket, _ := t.c.matchmaking.TicketNo(seat.Ticket)
	game := t.c.matchmaking.Tickets.Get(ticket).Game
	newcomers := int32(0)
	var parties []flow.Ref
	t.eachSearching(match, func(x *matchmaking.Ticket, _ string, party flow.Ref) {
		newcomers += x.Players
		parties = append(parties, party)
	})
	if r, ok := t.c.flow.InstanceOfGame(game); ok && t.hasRoom(r, newcomers) == nil && t.letsIn(r) {
		t.commitBackfill(match, session.ID(game))
		return
	}
	for _, party := range parties {
		t.endSearch(party, flow.OnMatchmakingFailed, flow.EngineFailed, "")
	}
}
