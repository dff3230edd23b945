package cell

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// No other player gets the seat of a member who waits for Game.Ready, not even over the plain API.
func TestSeatsOfWaitingMembersAreKept(t *testing.T) {
	for _, lax := range []bool{false, true} {
		w := newFlowWorld(t, func(c *flow.Config) {
			c.Games.ManualReady, c.Games.AllocationTimeout, c.Games.LaxPlayers = true, 10*time.Minute, lax
		})
		w.online("a", "b")
		g := w.play(false, flow.ReconnectOptional, "a", "b") // three seats
		stranger := func(names ...string) error {
			cmd := &hosting.ReservePlayers{Game: w.gameOf(g).ID}
			for _, name := range names {
				cmd.Players = append(cmd.Players, hosting.NewPlayer{ID: domain.PlayerSessionID(w.id()), Player: name})
			}
			return w.do(cmd)
		}
		if refused, ok := errors.AsType[*domain.Refusal](stranger("x", "y")); !ok || refused.Reason != domain.Full {
			t.Errorf("two strangers where one seat is free: %v", refused)
		}
		if err := stranger("x"); err != nil {
			t.Error(err)
		}
		if refused, ok := errors.AsType[*domain.Refusal](stranger("y")); !ok || refused.Reason != domain.Full {
			t.Errorf("a stranger where no seat is free: %v", refused)
		}
		if err := stranger("a"); (err == nil) != lax {
			t.Errorf("lax %t: the own seat, over the plain API: %v", lax, err)
		}
		w.must(&playerflow.ReadyGame{Instance: g})
		w.connect(g, "a", "b")
		if n := w.gameOf(g).SeatsHeld; n != 3 {
			t.Errorf("%d seats are held", n)
		}
	}
}

// The seat of a member who leaves before Game.Ready is free at once.
func TestLeaverBeforeReady(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.ManualReady = true })
	x := w.matchedGame("a", "b")
	g := x.ID
	w.must(&playerflow.LeaveGame{Caller: w.as("a"), Instance: g})
	if n := w.gameOf(g).SeatsHeld; n != 1 {
		t.Errorf("%d seats are held", n)
	}
}

// Note (a) of T4, docs/spec/player-flow.md#t4-a, holds also for a leaver who has been in another game since.
func TestLeaverWhoPlaysOn(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("me", "mate")
	g := w.play(true, flow.ReconnectOptional, "me", "mate")
	w.must(&playerflow.LeaveGame{Caller: w.as("me"), Instance: g})
	w.must(&playerflow.EndGame{Instance: w.play(true, flow.ReconnectOptional, "me")})
	w.startMatch(g.String())
	if n := w.gameOf(g).SeatsHeld; n != 1 {
		t.Errorf("%d seats are held", n)
	}
	w.wantNoticed(g, 0, "PlayersAdded:mate PlayerLeft:me:LEFT")
}

// However often a host is suspected and comes back: behind the deadline of a seat there is one reservation, and time passes
// while the host is there.
func TestFlappingHostKeepsNoSeat(t *testing.T) {
	for _, mode := range []string{"lost", "never came"} {
		t.Run(mode, func(t *testing.T) {
			w := newFlowWorld(t, nil)
			w.online("me", "mate")
			g := w.play(false, flow.ReconnectOptional, "me", "mate")
			w.connect(g, "mate")
			if mode == "lost" {
				w.connect(g, "me")
				w.lose(g, w.member("me").Session)
			} else {
				w.pass(61 * time.Second)
			}
			w.pass(time.Duration(w.member("me").HoldBy-w.cell.ContactTime(w.now))*time.Millisecond - 5*time.Second)
			w.details(g) // behind the deadline by 55 s
			key := processKey(w.gameOf(g).ProcessID)
			w.pass(10 * time.Second)
			for round := 1; !w.keys("me").Game.IsZero(); round++ {
				if round == 6 {
					t.Fatalf("the seat is kept: %+v", w.member("me"))
				}
				w.must(&hosting.LoseLink{Process: key, Link: uint64(6 + round)})
				w.pass(70 * time.Second)
				w.details(g)
				w.must(&hosting.ConnectProcess{Process: key, Link: uint64(7 + round)})
				w.must(&hosting.ReportHealth{Process: key, Healthy: true})
				w.pass(15 * time.Second)
			}
			want := map[string]flow.Reason{"lost": flow.ReconnectExpired, "never came": flow.NoShow}[mode]
			if last := w.player("me").LastGame; last.Membership != want {
				t.Errorf("ended %s, want %s", last.Membership, want)
			}
		})
	}
}

// A reservation that is made behind the deadline, while the host is suspected, can still be used.
func TestLastReservationIsGood(t *testing.T) {
	w, g := lostGame(t)
	w.pass(175 * time.Second)
	w.details(g)
	w.pass(10 * time.Second)
	key := processKey(w.gameOf(g).ProcessID)
	w.must(&hosting.LoseLink{Process: key, Link: 7})
	w.pass(60 * time.Second)
	if s := w.member("me").Status; s != flow.MemberDisconnected {
		t.Fatalf("the membership is %s", s)
	}
	w.details(g)
	w.must(&hosting.ConnectProcess{Process: key, Link: 8})
	w.connect(g, "me")
	w.lose(g, w.member("me").Session) // a new loss has the whole window
	w.pass(170 * time.Second)
	if fmt.Sprint(w.keys("me").Phase()) != "IN_GAME" {
		t.Errorf("me is %s", w.keys("me").Phase())
	}
	w.details(g)
	w.connect(g, "me")
}
