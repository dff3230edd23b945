package cell

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/search"
	"github.com/musterhq/muster/internal/domain/searchindex"
)

// states puts "me" into each status of table T4 in a game with "mate", under a mode; nil: there is no such state.
var states = []struct {
	status flow.MembershipStatus
	enter  func(w *flowWorld, mode flow.Reconnect) flow.InstanceID
}{
	{flow.MemberPending, func(w *flowWorld, mode flow.Reconnect) flow.InstanceID { return w.play(true, mode, "me", "mate") }},
	{flow.MemberReserved, func(w *flowWorld, mode flow.Reconnect) flow.InstanceID { return w.play(false, mode, "me", "mate") }},
	{flow.MemberNoShow, func(w *flowWorld, mode flow.Reconnect) flow.InstanceID {
		g := w.play(false, mode, "me", "mate")
		w.connect(g, "mate")
		w.pass(61 * time.Second)
		return g
	}},
	{flow.MemberActive, func(w *flowWorld, mode flow.Reconnect) flow.InstanceID {
		g := w.play(false, mode, "me", "mate")
		w.connect(g, "me", "mate")
		return g
	}},
	{flow.MemberDisconnected, func(w *flowWorld, mode flow.Reconnect) flow.InstanceID {
		g := w.play(false, mode, "me", "mate")
		w.connect(g, "me", "mate")
		w.lose(g, w.member("me").Session)
		return g
	}},
}

// t4 has a line for each trigger in each status; the outcomes are those under OFF, OPTIONAL and REQUIRED: a status, the
// reason of the end, a code, or "-" where the status cannot be.
var t4 = []struct {
	status  flow.MembershipStatus
	trigger string
	want    [3]string
}{
	{flow.MemberPending, "details", [3]string{"HOST_NOT_READY", "HOST_NOT_READY", "HOST_NOT_READY"}},
	{flow.MemberPending, "leave", [3]string{"ended LEFT", "ended LEFT", "LEAVE_NOT_ALLOWED"}},
	{flow.MemberPending, "decline", [3]string{"CANNOT_DECLINE_RECONNECT", "NOT_DISCONNECTED", "CANNOT_DECLINE_RECONNECT"}},
	{flow.MemberReserved, "accept", [3]string{"ACTIVE", "ACTIVE", "ACTIVE"}},
	{flow.MemberReserved, "expire", [3]string{"ended NO_SHOW", "NO_SHOW", "NO_SHOW"}},
	{flow.MemberReserved, "details", [3]string{"RESERVED", "RESERVED", "RESERVED"}},
	{flow.MemberReserved, "leave", [3]string{"ended LEFT", "ended LEFT", "LEAVE_NOT_ALLOWED"}},
	{flow.MemberReserved, "decline", [3]string{"CANNOT_DECLINE_RECONNECT", "ended DECLINED", "CANNOT_DECLINE_RECONNECT"}},
	{flow.MemberNoShow, "details", [3]string{"-", "RESERVED", "RESERVED"}},
	{flow.MemberNoShow, "hold over", [3]string{"-", "ended NO_SHOW", "NO_SHOW"}},
	{flow.MemberNoShow, "leave", [3]string{"-", "ended LEFT", "LEAVE_NOT_ALLOWED"}},
	{flow.MemberNoShow, "decline", [3]string{"-", "ended DECLINED", "CANNOT_DECLINE_RECONNECT"}},
	{flow.MemberActive, "lose", [3]string{"ended DISCONNECTED", "DISCONNECTED", "DISCONNECTED"}},
	{flow.MemberActive, "remove", [3]string{"ended REMOVED", "ended REMOVED", "ended REMOVED"}},
	{flow.MemberActive, "leave", [3]string{"ended LEFT", "ended LEFT", "LEAVE_NOT_ALLOWED"}},
	{flow.MemberActive, "decline", [3]string{"CANNOT_DECLINE_RECONNECT", "NOT_DISCONNECTED", "CANNOT_DECLINE_RECONNECT"}},
	{flow.MemberActive, "details", [3]string{"ACTIVE", "ACTIVE", "ACTIVE"}},
	{flow.MemberDisconnected, "details", [3]string{"-", "RESERVED", "RESERVED"}},
	{flow.MemberDisconnected, "hold over", [3]string{"-", "ended RECONNECT_EXPIRED", "DISCONNECTED"}},
	{flow.MemberDisconnected, "leave", [3]string{"-", "ended LEFT", "LEAVE_NOT_ALLOWED"}},
	{flow.MemberDisconnected, "decline", [3]string{"-", "ended DECLINED", "CANNOT_DECLINE_RECONNECT"}},
	{flow.MemberDisconnected, "back and lost too often", [3]string{"-", "ended TOO_MANY_DISCONNECTS", "DISCONNECTED"}},
	{0, "release", [3]string{"ended RELEASED", "ended RELEASED", "ended RELEASED"}},
	{0, "end", [3]string{"ended GAME_ENDED", "ended GAME_ENDED", "ended GAME_ENDED"}},
	{0, "force release", [3]string{"ended OPERATOR", "ended OPERATOR", "ended OPERATOR"}},
}

// trigger does something about the membership of "me".
func (w *flowWorld) trigger(name string, instance flow.InstanceID) (kernel.Command, bool) {
	switch name {
	case "details":
		return &playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: instance}, false
	case "leave":
		return &playerflow.LeaveGame{Caller: w.as("me"), Instance: instance}, false
	case "decline":
		return &playerflow.DeclineReconnect{Caller: w.as("me"), Instance: instance}, false
	case "accept":
		w.connect(instance, "me")
	case "expire":
		w.connect(instance, "mate")
		w.pass(61 * time.Second)
	case "hold over":
		w.pass(4 * time.Minute)
	case "lose":
		w.lose(instance, w.member("me").Session)
	case "remove":
		return &playerflow.RemoveMembers{Instance: instance, Players: []playerflow.RemovedMember{{Player: "me", Reason: flow.RemovedKicked}}}, false
	case "back and lost too often":
		for range 5 {
			w.must(&playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: instance})
			w.connect(instance, "me")
			w.lose(instance, w.member("me").Session)
		}
	case "release":
		return &playerflow.ReleaseMembers{Instance: instance, Players: []string{"me"}}, false
	case "end":
		return &playerflow.EndGame{Instance: instance, Result: `{"winner":"red"}`}, false
	case "force release":
		return &playerflow.ForceRelease{Player: "me", Game: true}, false
	}
	return nil, true
}

// eachT4 runs a test for each cell of table T4, with "me" in its status. want is an outcome of t4.
func eachT4(t *testing.T, test func(t *testing.T, w *flowWorld, status flow.MembershipStatus, instance flow.InstanceID, trigger, want string)) {
	for _, line := range t4 {
		for _, state := range states {
			if line.status != state.status && (line.status != 0 || state.status == flow.MemberPending) {
				continue
			}
			for i, want := range line.want {
				mode := flow.ReconnectOff + flow.Reconnect(i)
				if want == "-" || mode == flow.ReconnectOff && (state.status == flow.MemberNoShow || state.status == flow.MemberDisconnected) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", state.status, line.trigger, mode), func(t *testing.T) {
					w := newFlowWorld(t, nil)
					w.online("me", "mate")
					test(t, w, state.status, state.enter(w, mode), line.trigger, want)
				})
			}
		}
	}
}

// TestT4 checks table T4, docs/spec/player-flow.md#t4.
func TestT4(t *testing.T) {
	eachT4(t, func(t *testing.T, w *flowWorld, status flow.MembershipStatus, instance flow.InstanceID, trigger, want string) {
		if got := w.member("me").Status; got != status {
			t.Fatalf("membership is %s, want %s", got, status)
		}
		cmd, done := w.trigger(trigger, instance)
		var ended string
		switch {
		case done:
		case len(want) > 5 && want[:5] != "ended" && want != "RESERVED" && want != "ACTIVE":
			w.refused(cmd, flow.Code(want))
			return
		default:
			w.must(cmd)
		}
		if _, err := fmt.Sscanf(want, "ended %s", &ended); err == nil {
			last := w.player("me").LastGame
			if !w.keys("me").Game.IsZero() || last == nil || last.Membership.String() != ended {
				t.Errorf("keys %v, last game %+v, want ended %s", w.keys("me"), last, ended)
			}
			w.wantReservationsClosed(instance)
			return
		}
		if got := w.member("me").Status.String(); got != want {
			t.Errorf("membership is %s, want %s", got, want)
		}
	})
}

// wantReservationsClosed checks that no reservation of a player outlives the membership.
func (w *flowWorld) wantReservationsClosed(instance flow.InstanceID) {
	w.t.Helper()
	v := w.cell.View()
	for _, p := range v.PlayersNamed("me", 0, domain.PlayerSessionID{}, 100) {
		if p.Status.String() == "RESERVED" {
			w.t.Errorf("reservation %s of %s is still open", p.ID, instance)
		}
	}
}

// TestReservationAgain checks docs/spec/player-flow.md#t4-b: the same reservation while it has enough time left, then another one on the same seat.
func TestReservationAgain(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("me", "mate")
	g := w.play(false, flow.ReconnectOptional, "me", "mate")
	first := w.member("me").Session
	ask := func() domain.PlayerSessionID {
		cmd := &playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g}
		w.must(cmd)
		return cmd.Host.Session
	}
	if ask() != first {
		t.Error("a fresh reservation was replaced")
	}
	w.pass(51 * time.Second)
	second := ask()
	if second == first || w.gameOf(g).SeatsHeld != 2 {
		t.Errorf("reservation %s after %s, %d seats held", second, first, w.gameOf(g).SeatsHeld)
	}
	if err := w.accept(g, first); err == nil {
		t.Error("the void reservation was accepted")
	}
	w.connect(g, "me")
	if m := w.member("me"); m.Status != flow.MemberActive || m.Attempt != 2 {
		t.Errorf("%+v", m)
	}
}

// TestHeldSeat checks docs/spec/reconnect.md#seats: no other player gets the seat of a disconnected player, who is admitted although new
// players are denied.
func TestHeldSeat(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("me", "mate")
	g := w.play(false, flow.ReconnectOptional, "me", "mate") // three seats
	w.connect(g, "me", "mate")
	w.lose(g, w.member("me").Session)
	game := w.gameOf(g).ID
	if x := w.gameOf(g); x.SeatsHeld != 2 || x.SeatsEmpty != 1 {
		t.Errorf("%d seats held, %d of them empty", x.SeatsHeld, x.SeatsEmpty)
	}
	wantAnswers := func(players int32, joinable string) { // those of the hosting API
		t.Helper()
		if x := w.gameOf(g); x.Seated() != players {
			t.Errorf("the game session has %d players, want %d", x.Seated(), players)
		}
		v := w.cell.View()
		if u := v.Utilization(testFleet, testLocation); u.SeatsHeld-u.SeatsEmpty != players {
			t.Errorf("the fleet has %d players, want %d", u.SeatsHeld-u.SeatsEmpty, players)
		}
		for _, filter := range []string{fmt.Sprintf("playerSessionCount = %d", players), "hasAvailablePlayerSessions = " + joinable} {
			if n := w.found(filter); n != 1 {
				t.Errorf("%s finds %d game sessions", filter, n)
			}
		}
		if s, _ := v.FlowOf("mate", w.now); s.Game.HeldSeats != w.gameOf(g).SeatsEmpty {
			t.Errorf("held_seats is %d, want %d", s.Game.HeldSeats, w.gameOf(g).SeatsEmpty)
		}
	}
	wantAnswers(1, "true")
	defer func() { wantAnswers(3, "false") }()
	w.must(&hosting.ReservePlayers{Game: game, Players: []hosting.NewPlayer{{ID: domain.PlayerSessionID(w.id()), Player: "stranger"}}})
	if err := w.do(&hosting.ReservePlayers{Game: game, Players: []hosting.NewPlayer{{ID: domain.PlayerSessionID(w.id()), Player: "another"}}}); err == nil {
		t.Error("the seat that is kept was sold")
	}
	wantAnswers(2, "false") // no other player gets the third seat
	deny := true
	w.must(&hosting.UpdateGameSession{ID: game, DenyPlayers: &deny})
	w.check()
	w.must(&playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g})
	if x := w.gameOf(g); x.SeatsHeld != 3 || x.SeatsEmpty != 0 {
		t.Errorf("%d seats held, %d of them empty", x.SeatsHeld, x.SeatsEmpty)
	}
	w.connect(g, "me")
	w.must(&playerflow.LeaveGame{Caller: w.as("me"), Instance: g})
	if x := w.gameOf(g); x.SeatsHeld != 3 { // until its game server says that the player is gone
		t.Errorf("%d seats held", x.SeatsHeld)
	}
}

// TestSeatLost checks holdSlots=false: a player who returns to a full game has lost the seat.
func TestSeatLost(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.NoHold = true })
	w.online("me", "mate")
	g := w.play(false, flow.ReconnectOptional, "me", "mate")
	w.connect(g, "me", "mate")
	w.lose(g, w.member("me").Session)
	w.must(&hosting.ReservePlayers{Game: w.gameOf(g).ID, Players: []hosting.NewPlayer{{ID: domain.PlayerSessionID(w.id()), Player: "x"}, {ID: domain.PlayerSessionID(w.id()), Player: "y"}}})
	cmd := &playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g}
	w.must(cmd)
	if !cmd.Lost || w.player("me").LastGame.Membership != flow.SlotLost {
		t.Errorf("lost %t, last game %+v", cmd.Lost, w.player("me").LastGame)
	}
}

// TestRepeatAfterTheGame checks that a late repeat does not answer with the host of the player's next game.
func TestRepeatAfterTheGame(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("me", "mate")
	g := w.play(false, flow.ReconnectOptional, "me", "mate")
	by := w.as("me")
	by.Request = "r1"
	first := &playerflow.GetHostConnectionDetails{Caller: by, Instance: g}
	w.must(first)
	again := func() *flow.Host {
		cmd := &playerflow.GetHostConnectionDetails{Caller: by, Instance: g}
		w.must(cmd)
		return cmd.Host
	}
	if host := again(); first.Host == nil || host == nil || *host != *first.Host {
		t.Errorf("got %+v, then %+v", first.Host, host)
	}
	w.must(&playerflow.LeaveGame{Caller: w.as("me"), Instance: g})
	w.play(false, flow.ReconnectOptional, "me")
	if host := again(); host != nil {
		t.Errorf("got the host of the next game: %+v", host)
	}
}

// TestHoldIsFixed checks docs/spec/reconnect.md#timers: attempts do not move the deadline, and an open reservation may still be used.
func TestHoldIsFixed(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("me", "mate")
	g := w.play(false, flow.ReconnectOptional, "me", "mate")
	w.connect(g, "me", "mate")
	w.lose(g, w.member("me").Session)
	by := w.member("me").HoldBy
	w.pass(30 * time.Second)
	w.must(&playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g})
	w.pass(70 * time.Second)
	if m := w.member("me"); m.Status != flow.MemberDisconnected || m.HoldBy != by {
		t.Errorf("membership is %s until %d, want DISCONNECTED until %d", m.Status, m.HoldBy, by)
	}
	w.pass(70 * time.Second) // 170 s after the loss
	w.must(&playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g})
	w.pass(30 * time.Second) // the deadline is over, the reservation is not
	w.connect(g, "me")
	w.pass(time.Hour)
	if m := w.member("me"); m.Status != flow.MemberActive {
		t.Errorf("membership is %s, want ACTIVE", m.Status)
	}
	w.lose(g, w.member("me").Session)
	w.pass(170 * time.Second)
	w.must(&playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g})
	w.pass(time.Minute + time.Second)
	if last := w.player("me").LastGame; last == nil || last.Membership != flow.ReconnectExpired {
		t.Errorf("last game %+v, want RECONNECT_EXPIRED", last)
	}
}

// TestHoldIsOver: after the deadline, a player has only the reservation that was open, even if a server
// ends it early.
func TestHoldIsOver(t *testing.T) {
	for _, active := range []bool{true, false} {
		ends := map[string]func(w *flowWorld, g flow.InstanceID, id domain.PlayerSessionID){
			"the server's SDK": func(w *flowWorld, g flow.InstanceID, id domain.PlayerSessionID) { w.lose(g, id) },
			"the server": func(w *flowWorld, g flow.InstanceID, id domain.PlayerSessionID) {
				w.must(&playerflow.DisconnectMember{Instance: g, PlayerSession: id})
			},
			"a backend": func(w *flowWorld, _ flow.InstanceID, id domain.PlayerSessionID) {
				w.must(&hosting.ReleasePlayer{Player: id})
			},
		}
		for by, end := range ends {
			w := newFlowWorld(t, nil)
			w.online("me", "mate")
			g := w.play(false, flow.ReconnectOptional, "me", "mate")
			w.connect(g, "mate")
			want := flow.NoShow
			if active {
				w.connect(g, "me")
				w.lose(g, w.member("me").Session)
				want = flow.ReconnectExpired
			} else {
				w.pass(61 * time.Second)
			}
			w.pass(time.Duration(w.member("me").HoldBy-w.cell.ContactTime(w.now))*time.Millisecond - 10*time.Second)
			w.must(&playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g})
			w.pass(20 * time.Second) // the deadline is over, the reservation is not
			end(w, g, w.member("me").Session)
			if last := w.player("me").LastGame; last == nil || last.Membership != want {
				t.Errorf("ended by %s: last game %+v, want %s", by, last, want)
			}
		}
	}
}

// found returns how many game sessions a search finds.
func (w *flowWorld) found(filter string) int {
	w.t.Helper()
	f, err := search.ParseFilter(filter)
	if err != nil {
		w.t.Fatal(err)
	}
	scan, view := searchindex.NewScan(searchindex.Query{Fleet: testFleet, Filter: f, Most: 10}), w.cell.View()
	for !view.Search(scan) {
	}
	return len(scan.Found())
}
