package cell

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// fullGame returns a game of six players, a to f, made from a match of a and b. All play except a, whose seat is kept.
func fullGame(t *testing.T) (*flowWorld, *flow.Instance) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.DirectJoin = true })
	x := w.matchedGame("a", "b")
	for i, player := range []string{"c", "d", "e", "f"} {
		w.online(player)
		w.must(&playerflow.JoinGameInstance{Caller: w.as(player), Instance: x.ID, Team: []string{"red", "blue"}[i%2]})
	}
	w.connect(x.ID, "a", "b", "c", "d", "e", "f")
	w.lose(x.ID, w.member("a").Session)
	return w, w.instance(x.ID)
}

// askBySDK starts a backfill as a server does that knows nothing of player flow and has noticed that one of its players is gone.
func (w *flowWorld) askBySDK(x *flow.Instance, players ...string) {
	w.t.Helper()
	cmd := &matchmaking.StartMatchBackfill{Configuration: testQueue, ID: "more", Game: x.Game, Server: new(processKey(w.gameOf(x.ID).ProcessID))}
	for _, player := range players {
		cmd.Players = append(cmd.Players, matchmaking.Player{ID: player, Team: w.member(player).Team})
	}
	w.must(cmd)
}

func (w *flowWorld) wantSlots(x *flow.Instance, free int32, takes bool) {
	w.t.Helper()
	v := w.cell.View()
	if n, ok := v.FreeSlots(x.Game); n != free || ok != takes {
		w.t.Errorf("the matchmaker is told of %d slots, %v; want %d, %v", n, ok, free, takes)
	}
}

func (w *flowWorld) statusOfTicket(id string) matchmaking.Status {
	r, _ := w.cell.matchmaking.Records.Ticket(id)
	return w.cell.matchmaking.Records.Tickets.Get(r).Status
}

// A backfill stays open while its seat is kept for a player who may come back. It is fulfilled once the player has lost the seat.
func TestBackfillWaitsForAKeptSeat(t *testing.T) {
	w, x := fullGame(t)
	w.askBySDK(x, "b", "c", "d", "e", "f")
	w.wantSlots(x, 0, true)
	newcomer := w.search("g")
	if refused := w.proposeBackfill("more", newcomer, "red"); refused == nil || refused.Reason != domain.Full {
		t.Fatalf("a newcomer for a seat that is kept: %v", refused)
	}
	if s := w.statusOfTicket("more"); !s.Waits() {
		t.Fatalf("while the seat is kept the backfill is %s", s)
	}
	w.wayBack(x.ID, "a") // who comes back may still fail to
	w.wantSlots(x, 0, true)
	w.pass(3*time.Minute + time.Second)
	w.wantSlots(x, 1, true)
	if refused := w.proposeBackfill("more", newcomer, "red"); refused != nil {
		t.Fatal(refused)
	}
	if w.keys("g").Game != x.ID {
		t.Errorf("the newcomer has %+v", w.keys("g"))
	}
}

// Once the player is back, the game session is full, and the backfill ends as with any full game.
func TestBackfillEndsWhenThePlayerIsBack(t *testing.T) {
	w, x := fullGame(t)
	w.askBySDK(x, "b", "c", "d", "e", "f")
	w.wayBack(x.ID, "a")
	w.connect(x.ID, "a")
	w.wantSlots(x, 0, false)
	if refused := w.proposeBackfill("more", w.search("g"), "red"); refused == nil {
		t.Error("a full game got a newcomer")
	}
	if s := w.statusOfTicket("more"); s != matchmaking.Failed {
		t.Errorf("the backfill of a full game is %s", s)
	}
}

// A game may also call Game.EnterMatchmaking while the seat is kept. Once the player has lost the seat, the ticket no longer names the
// player: the team has room again.
func TestGameAsksForAKeptSeat(t *testing.T) {
	w, x := fullGame(t)
	w.refused(&playerflow.EnterBackfill{Instance: x.ID, Ticket: domain.BackfillID(w.id()), Slots: 2}, flow.GameFull)
	more := &playerflow.EnterBackfill{Instance: x.ID, Ticket: domain.BackfillID(w.id()), Slots: 1}
	w.must(more)
	roster := func() (players string, ticket matchmaking.Ticket) {
		r, ok := w.cell.matchmaking.Records.BackfillOf(x.Game)
		if !ok {
			t.Fatal("there is no backfill")
		}
		ticket = *w.cell.matchmaking.Records.Tickets.Get(r)
		for id := range ticket.EachPlayer {
			players += id
		}
		return players, ticket
	}
	all, first := roster()
	if all != "abcdef" {
		t.Errorf("while the seat is kept, the roster is %s", all)
	}
	w.pass(3*time.Minute + time.Second)
	all, second := roster()
	if all != "bcdef" || second.Slots != 1 || second.Start != first.Start || second.TimeoutAt != first.TimeoutAt {
		t.Errorf("without a, the roster is %s, and the ticket %+v after %+v", all, second, first)
	}
	if refused := w.proposeBackfill(second.ID, w.search("g"), "red"); refused != nil {
		t.Fatal(refused)
	}
	if w.keys("g").Game != x.ID {
		t.Errorf("the newcomer has %+v", w.keys("g"))
	}
}

// If a seat is taken while the players of a match are asked, and may become free again, neither side fails: both keep searching.
func TestSeatTakenWhileAMatchIsAccepted(t *testing.T) {
	w, x := fullGame(t)
	w.pass(3*time.Minute + time.Second)
	cmd := &matchmaking.StartMatchBackfill{Configuration: acceptQueue, ID: "more", Game: x.Game}
	for _, player := range []string{"b", "c", "d", "e", "f"} {
		cmd.Players = append(cmd.Players, matchmaking.Player{ID: player, Team: w.member(player).Team})
	}
	w.must(cmd)
	ticket := w.ticket(w.searchIn(acceptQueue, "g"))
	c, _ := w.cell.matchmaking.Records.Configuration(acceptQueue)
	r, _ := w.cell.matchmaking.Records.Ticket("more")
	backfill := w.cell.matchmaking.Records.Tickets.Get(r)
	match := &matchmaking.ProposeMatches{Configuration: acceptQueue, Version: c.Version, Proposals: []matchmaking.Proposal{{ID: w.id(), PlayersMax: 6, Tickets: []matchmaking.ProposedTicket{
		{TicketKey: matchmaking.TicketKey{No: backfill.No, Generation: backfill.Generation}, Team: ""}, {TicketKey: matchmaking.TicketKey{No: ticket.No, Generation: ticket.Generation}, Team: "red"},
	}}}}
	if w.must(match); match.Refused[0] != nil {
		t.Fatal(match.Refused[0])
	}
	w.online("h")
	w.must(&playerflow.JoinGameInstance{Caller: w.as("h"), Instance: x.ID, Team: "red"})
	since := w.seq("g")
	w.must(&matchmaking.AcceptMatch{Ticket: ticket.ID, Players: []string{"g"}, Accept: true})
	w.wantTold("g", since, "MatchAcceptanceChanged MatchmakingResumed:NO_CAPACITY")
	for _, id := range []string{"more", ticket.ID} {
		if s := w.statusOfTicket(id); !s.Waits() {
			t.Errorf("ticket %s is %s, want it to search on", id, s)
		}
	}
	w.wantPhase("g", flow.Matchmaking)
}

// wayBack makes a player ask to return to a game.
func (w *flowWorld) wayBack(g flow.InstanceID, player string) {
	w.t.Helper()
	w.must(&playerflow.GetHostConnectionDetails{Caller: w.as(player), Instance: g})
}

// With STANDALONE a game instance's seats are known, too: a match for a kept seat is refused, and no player's search ends.
func TestStandaloneBackfillWaitsForAKeptSeat(t *testing.T) {
	w, x := fullGame(t)
	w.must(&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{
		Name: "alone", Region: "us-east-1", RuleSet: "rules", RequestTimeout: 10 * time.Minute, Standalone: true,
	}})
	cmd := &matchmaking.StartMatchBackfill{Configuration: "alone", ID: "more", Game: x.Game}
	for i, player := range []string{"b", "c", "d", "e", "f"} {
		cmd.Players = append(cmd.Players, matchmaking.Player{ID: player, Team: []string{"red", "blue"}[i%2]})
	}
	w.must(cmd)
	w.must(&matchmaking.StartMatchmaking{Configuration: "alone", ID: "new", Players: []matchmaking.Player{{ID: "z"}}})
	propose := func() *domain.Refusal {
		c, _ := w.cell.matchmaking.Records.Configuration("alone")
		keys := [2]matchmaking.TicketKey{}
		for i, id := range []string{"more", "new"} {
			r, ok := w.cell.matchmaking.Records.Ticket(id)
			if !ok {
				t.Fatal(fmt.Sprint("no ticket ", id))
			}
			x := w.cell.matchmaking.Records.Tickets.Get(r)
			keys[i] = matchmaking.TicketKey{No: x.No, Generation: x.Generation}
		}
		match := &matchmaking.ProposeMatches{Configuration: "alone", Version: c.Version, Proposals: []matchmaking.Proposal{{ID: w.id(), PlayersMax: 6, Tickets: []matchmaking.ProposedTicket{
			{TicketKey: keys[0], Team: ""}, {TicketKey: keys[1], Team: "blue"},
		}}}}
		w.must(match)
		return match.Refused[0]
	}
	if refused := propose(); refused == nil || refused.Reason != domain.Full {
		t.Errorf("a newcomer for a seat that is kept: %v", refused)
	}
	w.pass(3*time.Minute + time.Second)
	if refused := propose(); refused != nil {
		t.Error(refused)
	}
}
