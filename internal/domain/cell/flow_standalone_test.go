package cell

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
)

const alone = "alone" // a configuration that places nothing

func newStandaloneWorld(t *testing.T, change func(*flow.Config)) *flowWorld {
	w := newFlowWorld(t, func(c *flow.Config) {
		c.Search.PlacementQueue = "q"
		if change != nil {
			change(c)
		}
	})
	w.queues()
	w.must(&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{
		Name: alone, Region: "us-east-1", RuleSet: "rules", RequestTimeout: 5 * time.Minute, Standalone: true,
	}})
	return w
}

// TestStandalone: the match of a configuration that places nothing is committed, and player flow places it, in one transaction.
func TestStandalone(t *testing.T) {
	w := newStandaloneWorld(t, nil)
	red, blue := w.searchIn(alone, "a", "b"), w.searchIn(alone, "c")
	before := w.seq("a")
	entries := len(w.journal)
	if refused := w.propose(alone, red, blue); refused != nil {
		t.Fatal(refused)
	}
	if len(w.journal) != entries+1 {
		t.Errorf("%d transactions, want 1", len(w.journal)-entries)
	}
	game := w.keys("a").Game
	w.wantTold("a", before, "GameSessionChanged AddedToGame")
	if w.keys("c").Game != game || game.IsZero() || w.member("c").Team != "blue" {
		t.Errorf("c has keys %v and team %s", w.keys("c"), w.member("c").Team)
	}
	if x := w.ticket(red); x.Status != matchmaking.Completed {
		t.Errorf("the ticket is %s", x.Status)
	}
	p := w.placement(game.String())
	if p.Queue != "q" || p.PlayersMax != 6 || len(p.Players) != 3 || p.Status != placement.Pending {
		t.Errorf("placement %+v", p)
	}
	w.check()

	key := w.server("host")
	id := session.MakeID(testFleet, testLocation, game.String())
	w.must(&hosting.PromptGameSession{Process: key, Game: id})
	w.must(&hosting.ActivateGameSession{Process: key, Game: id})
	if m := w.member("a"); m.Status != flow.MemberReserved {
		t.Errorf("a is %s", m.Status)
	}
	if got := w.gameOf(game).Properties; len(got) != 3 || got[0].Value != game.String() || got[2].Value != alone {
		t.Errorf("properties %v", got)
	}
	w.connect(game, "a", "b", "c")
}

// A configuration with as many game properties as it may have is placed with those of player flow, too.
func TestStandaloneWithAllProperties(t *testing.T) {
	w := newStandaloneWorld(t, nil)
	properties := make([]keyvalue.Pair, 16)
	for i := range properties {
		properties[i] = keyvalue.Pair{Key: fmt.Sprint("k", i), Value: "v"}
	}
	w.must(&matchmaking.UpdateConfiguration{Name: alone, Properties: &properties})
	if refused := w.propose(alone, w.searchIn(alone, "a"), w.searchIn(alone, "b")); refused != nil {
		t.Fatal(refused)
	}
	game := w.keys("a").Game
	if game.IsZero() {
		t.Fatalf("a is told %s", w.told("a", 0))
	}
	v := w.cell.View()
	if p, ok := v.Placement(game.String()); !ok || len(p.Properties) != len(properties)+3 {
		t.Errorf("the placement has %d properties", len(p.Properties))
	}
}

// TestStandaloneIsEntered only where a game session queue hosts what comes of it.
func TestStandaloneIsEntered(t *testing.T) {
	for _, queue := range []string{"", "missing"} {
		w := newStandaloneWorld(t, func(c *flow.Config) { c.Search.PlacementQueue = queue })
		w.party("a")
		w.refused(&playerflow.EnterMatchmaking{Caller: w.as("a"), Ticket: domain.TicketID(w.id()), Queue: alone}, flow.QueueNotFound)
	}
}

// TestStandaloneWithoutHost ends as other placements do that find none, also when the queue has gone meanwhile.
func TestStandaloneWithoutHost(t *testing.T) {
	w := newStandaloneWorld(t, func(c *flow.Config) { c.Games.Requeue = true })
	a, b := w.searchIn(alone, "a"), w.searchIn(alone, "b")
	if refused := w.propose(alone, a, b); refused != nil {
		t.Fatal(refused)
	}
	before := w.seq("a")
	w.pass(3 * time.Minute) // allocationTimeout
	w.wantTold("a", before, "GameSessionChanged EnteredMatchmaking FailedToAllocateGameInstance:TIMEOUT")
	w.wantPhase("a", flow.Matchmaking)

	w.must(&hosting.DeleteQueue{Name: "q"})
	before = w.seq("b")
	if refused := w.propose(alone, w.keys("a").Ticket, w.keys("b").Ticket); refused != nil {
		t.Fatal(refused)
	}
	w.wantPhase("b", flow.InParty)
	w.wantTold("b", before, "GameSessionChanged AddedToGame FailedToAllocateGameInstance:HOST_ERROR")
}

// TestStandaloneBackfill seats newcomers in a game of player flow; for a game session outside player flow their search fails.
func TestStandaloneBackfill(t *testing.T) {
	w := newStandaloneWorld(t, nil)
	w.online("host")
	g := w.play(false, flow.ReconnectOptional, "host")
	w.connect(g, "host")
	backfill := func(game string) domain.UUID {
		id := w.id()
		w.must(&matchmaking.StartMatchBackfill{Configuration: alone, ID: domain.TicketID(id).String(), Game: game, Players: []matchmaking.Player{{ID: "host", Team: "red"}}})
		return id
	}
	propose := func(ticket, team domain.TicketID) {
		c, _ := w.cell.matchmaking.Records.Configuration(alone)
		a, b := w.ticket(ticket), w.ticket(team)
		cmd := &matchmaking.ProposeMatches{Configuration: alone, Version: c.Version, Proposals: []matchmaking.Proposal{{ID: w.id(), PlayersMax: 2, Tickets: []matchmaking.ProposedTicket{
			{TicketKey: matchmaking.TicketKey{No: a.No, Generation: a.Generation}, Team: "blue"}, {TicketKey: matchmaking.TicketKey{No: b.No, Generation: b.Generation}, Team: ""},
		}}}}
		w.must(cmd)
		if cmd.Refused[0] != nil {
			t.Fatal(cmd.Refused[0])
		}
	}
	propose(w.searchIn(alone, "a"), domain.TicketID(backfill(string(w.gameOf(g).ID))))
	if w.keys("a").Game != g || w.member("a").Status != flow.MemberReserved {
		t.Errorf("a has keys %v", w.keys("a"))
	}
	ticket := w.searchIn(alone, "b")
	before := w.seq("b")
	propose(ticket, domain.TicketID(backfill("elsewhere")))
	w.wantTold("b", before, "GameSessionChanged MatchmakingFailed:ENGINE")
	w.wantPhase("b", flow.InParty)
}
