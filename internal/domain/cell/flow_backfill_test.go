package cell

import (
	"errors"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/session"
)

// matchedGame is a game instance of a match of two parties of one, whose server runs.
func (w *flowWorld) matchedGame(red, blue string) *flow.Instance {
	w.t.Helper()
	if refused := w.propose(testQueue, w.search(red), w.search(blue)); refused != nil {
		w.t.Fatal(refused)
	}
	g := w.keys(red).Game
	w.startMatch(w.instance(g).Placement)
	return w.instance(g)
}

// A newcomer has the PlayerData that the studio has said, and as much time to come as everybody in the game.
func TestNewcomersReservation(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.Reservation = 5 * time.Minute })
	x := w.matchedGame("a", "b")
	more := &EnterBackfill{Instance: x.ID, Ticket: w.id()}
	w.must(more)
	ticket := w.enterWith(flow.Advice{Players: []flow.PlayerAdvice{{Player: "c", Data: "level=3"}}}, "c")
	if refused := w.proposeBackfill(more.Made.ID, ticket, "red"); refused != nil {
		t.Fatal(refused)
	}
	r, _ := w.cell.sessions.PlayerByID(w.member("c").Session)
	p := w.cell.sessions.Players.Get(r)
	if p.Data != "level=3" {
		t.Errorf("PlayerData is %q", p.Data)
	}
	if want := w.cell.contact(w.now).Add(5 * time.Minute); p.ReserveBy != want {
		t.Errorf("the reservation ends at %d, want %d", p.ReserveBy, want)
	}
}

// Members who wait for Game.Ready have their seats, also when what the placement reserved has expired; who has such a
// reservation is not counted twice.
func TestSeatsOfThoseWhoWaitForTheServer(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.ManualReady, c.Games.AllocationTimeout = true, 10*time.Minute })
	x := w.matchedGame("a", "b")
	free := func() int32 {
		n, _ := w.cell.freeSlots(x.Game)
		return n
	}
	if n := free(); n != 4 {
		t.Errorf("%d of 6 seats are free", n)
	}
	w.pass(2 * time.Minute)
	if p := w.gameOf(x.ID); p.SeatsHeld != 0 || w.member("a").Status != flow.MemberPending {
		t.Fatalf("%d seats are held, a is %s", p.SeatsHeld, w.member("a").Status)
	}
	if n := free(); n != 4 {
		t.Errorf("%d of 6 seats are free when the reservations have expired", n)
	}
}

func TestRoomForThoseWhoJoinBeforeReady(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.ManualReady, c.Games.DirectJoin = true, true })
	x := w.matchedGame("a", "b")
	for _, player := range []string{"c", "d", "e", "f"} {
		w.online(player)
		w.must(&JoinGameInstance{Caller: w.as(player), Instance: x.ID})
	}
	w.online("g")
	w.refused(&JoinGameInstance{Caller: w.as("g"), Instance: x.ID}, flow.GameFull)
	w.must(&ReadyGame{x.ID})
	for _, player := range []string{"a", "b", "c", "d", "e", "f"} {
		if m := w.member(player); m.Status != flow.MemberReserved {
			t.Errorf("%s is %s", player, m.Status)
		}
	}
	if g, _ := w.cell.sessions.Game(session.ID(x.Game)); w.cell.sessions.Games.Get(g).SeatsHeld != 6 {
		t.Errorf("%d seats are held", w.cell.sessions.Games.Get(g).SeatsHeld)
	}
}

// A player who has left a game and searches again goes on searching, although the game's server has not ended the player session
// yet: neither Game.EnterMatchmaking nor a server that names the player ends a stranger's search.
func TestBackfillLeavesLeaversAlone(t *testing.T) {
	w := newFlowWorld(t, nil)
	x := w.matchedGame("a", "b")
	w.connect(x.ID, "a", "b")
	w.must(&LeaveGame{Caller: w.as("a"), Instance: x.ID})
	again := &EnterMatchmaking{Caller: w.as("a"), Ticket: w.id(), Queue: testQueue}
	w.must(again)

	more := &EnterBackfill{Instance: x.ID, Ticket: w.id()}
	w.must(more)
	if w.keys("a").Ticket != again.Made {
		t.Errorf("a has keys %+v", w.keys("a"))
	}
	r, _ := w.cell.matchmaking.Ticket(more.Made.ID)
	if roster := matchmaking.DecodeRoster(w.cell.matchmaking.Tickets.Get(r).Roster); len(roster) != 1 || roster[0].ID != "b" {
		t.Errorf("the game says that these are there: %+v", roster)
	}

	named := &StartMatchBackfill{Configuration: testQueue, ID: "named", Game: x.Game, Players: []matchmaking.Player{{ID: "a", Team: "red"}, {ID: "b", Team: "blue"}}}
	refused, ok := errors.AsType[*domain.Refusal](w.do(named))
	if !ok || refused.Reason != domain.Invalid || w.keys("a").Ticket != again.Made {
		t.Errorf("a server named a: %v; a has keys %+v", refused, w.keys("a"))
	}
	w.setConfig(`{"GameInstanceServiceConfig": {"strictPlayers": false}}`)
	w.must(named)
	w.wantPhase("a", flow.InParty)
}
