package cell

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
)

func (w *flowWorld) instance(id flow.InstanceID) *flow.Instance {
	w.t.Helper()
	r, ok := w.cell.playerflow.Flow.Instance(id)
	if !ok {
		w.t.Fatalf("%s is not known", id)
	}
	return w.cell.playerflow.Flow.Instances.Get(r)
}

// TestT3 checks the rows of docs/spec/player-flow.md#t3. Each ends a game of "me", who is in a party, and "solo", who is not.
func TestT3(t *testing.T) {
	for _, row := range []struct {
		name    string
		pending bool
		end     func(w *flowWorld, g flow.InstanceID)
		reason  flow.Reason // of the instance
		told    string
		lives   bool // the game session goes on
	}{
		{"allocation timeout", true, func(w *flowWorld, _ flow.InstanceID) { w.pass(2*time.Minute + time.Second) }, flow.AllocationFailed,
			"GameSessionChanged FailedToAllocateGameInstance:TIMEOUT", false},
		{"placement stopped", true, func(w *flowWorld, g flow.InstanceID) { w.must(&hosting.StopPlacement{ID: g.String()}) }, flow.AllocationFailed,
			"GameSessionChanged FailedToAllocateGameInstance:CANCELLED", false},
		{"queue deleted", true, func(w *flowWorld, _ flow.InstanceID) { w.must(&hosting.DeleteQueue{Name: "q"}) }, flow.AllocationFailed,
			"GameSessionChanged FailedToAllocateGameInstance:HOST_ERROR", false},
		{"EndGame", false, func(w *flowWorld, g flow.InstanceID) { w.must(&playerflow.EndGame{Instance: g}) }, flow.Finished,
			"GameSessionChanged GameEnded:FINISHED RemovedFromGame:GAME_ENDED", true},
		{"process ended", false, func(w *flowWorld, g flow.InstanceID) {
			w.must(&hosting.EndProcess{Process: processKey(w.gameOf(g).ProcessID), Request: 1})
		}, flow.Finished, "GameSessionChanged GameEnded:FINISHED RemovedFromGame:GAME_ENDED", false},
		{"process ended when it was told to", false, func(w *flowWorld, g flow.InstanceID) {
			w.must(&hosting.TerminateGameSession{ID: w.gameOf(g).ID})
			w.must(&hosting.EndProcess{Process: processKey(w.gameOf(g).ProcessID), Request: 1})
		}, flow.Terminated, "GameSessionChanged GameEnded:TERMINATED RemovedFromGame:GAME_TERMINATED", false},
		{"process died", false, func(w *flowWorld, g flow.InstanceID) {
			w.must(&hosting.LoseLink{Process: processKey(w.gameOf(g).ProcessID), Link: 7})
			w.pass(101 * time.Second)
		}, flow.HostLost, "GameSessionChanged GameEnded:HOST_LOST RemovedFromGame:HOST_LOST", false},
		{"terminated", false, func(w *flowWorld, g flow.InstanceID) {
			w.must(&hosting.TerminateGameSession{ID: w.gameOf(g).ID})
			w.refused(&playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g}, flow.GameIsEnding)
			w.pass(31 * time.Second)
		}, flow.Terminated, "GameSessionChanged GameEnded:TERMINATED RemovedFromGame:GAME_TERMINATED", true},
		{"absolute timeout", false, func(w *flowWorld, _ flow.InstanceID) { w.pass(6*time.Hour + time.Second) }, flow.AbsoluteTimeout,
			"GameSessionChanged GameEnded:ABSOLUTE_TIMEOUT RemovedFromGame:ABSOLUTE_TIMEOUT", true},
		{"force end", false, func(w *flowWorld, g flow.InstanceID) { w.must(&playerflow.ForceEnd{Instance: g}) }, flow.ByTheOperator,
			"GameSessionChanged GameEnded:OPERATOR RemovedFromGame:OPERATOR", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newFlowWorld(t, nil)
			w.party("me")
			w.online("solo")
			w.must(&playerflow.SetReady{Caller: w.as("me"), Ready: true})
			g := w.play(row.pending, flow.ReconnectRequired, "me", "solo")
			var game session.ID
			if !row.pending {
				w.connect(g, "me", "solo")
				game = w.gameOf(g).ID
			}
			before := w.seq("solo")
			row.end(w, g)
			if x := w.instance(g); x.Status != flow.InstanceEnded || x.EndReason != row.reason || len(x.Members()) != 0 {
				t.Errorf("the game instance is %s (%s) with %d members", x.Status, x.EndReason, len(x.Members()))
			}
			w.wantPhase("me", flow.InParty)
			w.wantPhase("solo", flow.Idle)
			w.wantTold("solo", before, row.told)
			r, _ := w.cell.playerflow.Flow.Party(w.keys("me").Party)
			if ready := w.cell.playerflow.Flow.Parties.Get(r).Members[0].Ready; ready != row.pending {
				t.Errorf("ready is %t", ready)
			}
			if len(w.player("me").Penalties) != 0 {
				t.Errorf("penalties %v", w.player("me").Penalties)
			}
			if code := flow.CodeOf(w.do(&playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g})); code != flow.GameHasEnded {
				t.Errorf("details of an ended game: %s", code)
			}
			if !row.pending {
				if x, _ := w.cell.hosting.Sessions.Game(game); w.cell.hosting.Sessions.Games.Get(x).Live() != row.lives {
					t.Errorf("the game session lives: %t", !row.lives)
				}
			} else if p, _ := w.cell.hosting.Placements.Placement(g.String()); w.cell.hosting.Placements.Placements.Get(p).Status == 1 {
				t.Error("the placement is still pending")
			}
			w.pass(11 * time.Minute)
			if _, ok := w.cell.playerflow.Flow.Instance(g); ok {
				t.Error("the game instance is remembered for ever")
			}
		})
	}
}

// TestEmptyGame checks emptyTimeout.
func TestEmptyGame(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.EmptyTimeout = time.Minute })
	w.online("me")
	g := w.play(false, flow.ReconnectOptional, "me")
	w.must(&playerflow.LeaveGame{Caller: w.as("me"), Instance: g})
	w.pass(59 * time.Second)
	if !w.instance(g).Live() {
		t.Error("it has ended too early")
	}
	w.pass(2 * time.Second)
	if w.instance(g).Live() {
		t.Error("it is still there")
	}
}

// TestManualReady: no member has a reservation before the server reports that it accepts players.
func TestManualReady(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.ManualReady = true })
	w.online("me")
	g := w.play(false, flow.ReconnectOptional, "me")
	if m := w.member("me"); m.Status != flow.MemberPending || w.gameOf(g).SeatsHeld != 0 {
		t.Errorf("membership is %s, %d seats are held", m.Status, w.gameOf(g).SeatsHeld)
	}
	w.refused(&playerflow.GetHostConnectionDetails{Caller: w.as("me"), Instance: g}, flow.HostNotReady)
	w.must(&playerflow.ReadyGame{Instance: g})
	w.connect(g, "me")
}

// TestKeepAlive: a server that announced keep-alives is suspected after the first missing one, and given up after
// the last permitted one. While it is suspected, the timers of kept seats stop.
func TestKeepAlive(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.KeepAlive = 15 * time.Second })
	w.online("me", "mate")
	g := w.play(false, flow.ReconnectOptional, "me", "mate")
	w.connect(g, "me", "mate")
	w.lose(g, w.member("me").Session)
	w.pass(10 * time.Second)
	w.must(&playerflow.KeepGameAlive{Instance: g})
	w.pass(20 * time.Second)
	if x := w.instance(g); x.Suspect == 0 || w.member("me").HoldBy != 0 {
		t.Fatalf("suspect since %d, hold until %d", x.Suspect, w.member("me").HoldBy)
	}
	left := w.member("me").HoldLeft
	w.pass(20 * time.Second)
	w.must(&playerflow.KeepGameAlive{Instance: g})
	if m := w.member("me"); w.instance(g).Suspect != 0 || int64(m.HoldBy) != int64(w.cell.ContactTime(w.now))+left {
		t.Errorf("hold until %d, %d were left", m.HoldBy, left)
	}
	w.pass(61 * time.Second)
	if x := w.instance(g); x.EndReason != flow.HostLost {
		t.Errorf("it is %s (%s)", x.Status, x.EndReason)
	}
}

// TestMakeGameIsAllOrNothing: a studio's match checks all players, and moves all of them or none. A repeat is recognised.
func TestMakeGameIsAllOrNothing(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("a", "b")
	w.search("c")
	plan := func(players ...string) *playerflow.MakeGame {
		p := playerflow.GamePlan{ID: flow.InstanceID(w.id()), Queue: "q", PlayersMax: 4}
		for _, x := range players {
			p.Players = append(p.Players, playerflow.PlannedPlayer{Player: x})
		}
		return &playerflow.MakeGame{Plan: p}
	}
	w.refused(plan("a", "b", "c"), flow.InMatchmaking)
	w.refused(plan("a", "nobody"), flow.PlayerNotFound)
	w.refused(plan("a", "a"), flow.InvalidArgument)
	w.refused(plan(), flow.InvalidArgument)
	if err := w.do(&playerflow.MakeGame{Plan: playerflow.GamePlan{ID: flow.InstanceID(w.id()), Queue: "nosuch", PlayersMax: 4, Players: []playerflow.PlannedPlayer{{Player: "a"}}}}); err == nil {
		t.Error("there is no such queue")
	}
	game := plan("a", "b")
	w.must(game)
	entries := len(w.journal)
	w.must(game)
	if !game.Repeated || len(w.journal) != entries {
		t.Error("the repeat was not recognised")
	}
	w.refused(plan("a"), flow.PlayerInGame)
}

// TestLeaverWhilePending checks docs/spec/player-flow.md#t4-a: the seat of a player who left while the game was pending is free at once.
func TestLeaverWhilePending(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("me", "mate")
	g := w.play(true, flow.ReconnectOptional, "me", "mate")
	w.must(&playerflow.LeaveGame{Caller: w.as("me"), Instance: g})
	if p := w.player("me").Penalties; len(p) != 1 || p[0].Kind != flow.Dodge || p[0].Until != 0 {
		t.Errorf("penalties %+v, want a warning", p)
	}
	w.startMatch(g.String())
	if x := w.gameOf(g); x.SeatsHeld != 1 {
		t.Errorf("%d seats are held", x.SeatsHeld)
	}
	w.connect(g, "mate")
}

// A server that ends a player session with its SDK, which accepts no reason, may report afterwards that the player has quit.
func TestQuitBehindTheEndOfAPlayerSession(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("a", "b")
	g := w.play(false, flow.ReconnectOptional, "a", "b")
	for _, player := range []string{"a", "b"} {
		w.must(&playerflow.ConnectMember{Instance: g, PlayerSession: w.member(player).Session})
	}
	ended := w.member("a").Session
	w.lose(g, ended)
	if w.member("a").Status != flow.MemberDisconnected {
		t.Fatalf("without a reason a is %s", w.member("a").Status)
	}
	quit := &playerflow.DisconnectMember{Instance: g, PlayerSession: ended, Quit: true}
	w.must(quit)
	if last := w.player("a").LastGame; quit.Stale || last == nil || last.Membership != flow.Left {
		t.Errorf("stale %t, %+v", quit.Stale, last)
	}
	w.check()

	ended = w.member("b").Session
	w.lose(g, ended)
	w.must(&playerflow.GetHostConnectionDetails{Caller: w.as("b"), Instance: g}) // b is on the way back
	quit = &playerflow.DisconnectMember{Instance: g, PlayerSession: ended, Quit: true}
	w.must(quit)
	if !quit.Stale || w.member("b").Status != flow.MemberReserved {
		t.Errorf("of an earlier player session: stale %t, b is %s", quit.Stale, w.member("b").Status)
	}
}

// TestServerCalls checks the partner calls of game servers.
func TestServerCalls(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("a", "b", "c", "d", "e")
	g := w.play(false, flow.ReconnectOptional, "a", "b", "c") // four seats
	for _, player := range []string{"a", "b", "c"} {
		w.must(&playerflow.ConnectMember{Instance: g, PlayerSession: w.member(player).Session})
	}
	if err := w.do(&playerflow.ConnectMember{Instance: g, PlayerSession: domain.PlayerSessionID(w.id())}); flow.CodeOf(err) != flow.InvalidToken {
		t.Error(err)
	}
	add := &playerflow.AddMembers{Instance: g, Players: []playerflow.PlannedPlayer{{Player: "d", Team: "red"}, {Player: "e"}, {Player: "a"}, {Player: "nobody"}}}
	w.must(add)
	if fmt.Sprint(add.Failed) != "[{e GAME_FULL} {nobody PLAYER_NOT_FOUND}]" || w.member("d").Status != flow.MemberReserved {
		t.Errorf("failed: %v", add.Failed)
	}
	lost := &playerflow.DisconnectMember{Instance: g, PlayerSession: w.member("a").Session}
	w.must(lost)
	if w.member("a").Status != flow.MemberDisconnected || lost.Stale {
		t.Errorf("a is %s", w.member("a").Status)
	}
	w.must(lost)
	if lost.Stale || w.member("a").Disconnects != 1 {
		t.Errorf("a repeat: stale %t, %d disconnects", lost.Stale, w.member("a").Disconnects)
	}
	quit := &playerflow.DisconnectMember{Instance: g, PlayerSession: w.member("b").Session, Quit: true}
	for range 2 {
		w.must(quit)
		if last := w.player("b").LastGame; last == nil || last.Membership != flow.Left || quit.Stale {
			t.Errorf("stale %t, %+v", quit.Stale, last)
		}
	}
	w.must(&playerflow.RemoveMembers{Instance: g, Players: []playerflow.RemovedMember{{Player: "c", Reason: flow.RemovedAFK, Penalise: true}, {Player: "zoe"}}})
	if p := w.player("c").Penalties; len(p) != 1 || p[0].Kind != flow.AFK {
		t.Errorf("penalties %v", p)
	}
	again := &playerflow.RemoveMembers{Instance: g, Players: []playerflow.RemovedMember{{Player: "c", Reason: flow.RemovedAFK, Penalise: true}, {Player: "zoe"}, {Player: "b"}}}
	w.must(again)
	if p := w.player("c").Penalties; strings.Join(again.Unknown, " ") != "zoe b" || p[0].Level != 1 {
		t.Errorf("a repeat: unknown %v, penalties %v", again.Unknown, p)
	}
	text := `{"map":"dust"}`
	before := w.seq("d")
	w.must(&playerflow.UpdateGame{Instance: g, Attributes: &text, PlayerAttributes: map[string]string{"d": `{"lives":3}`}})
	w.wantTold("d", before, "GameInstanceUpdated")
	if w.member("d").Attributes != `{"lives":3}` {
		t.Error("the player's attributes are lost")
	}
	release := &playerflow.ReleaseMembers{Instance: g, Players: []string{"a", "zoe"}}
	w.must(release)
	if strings.Join(release.Unknown, " ") != "zoe" || len(w.player("a").Penalties) != 0 {
		t.Errorf("%+v, penalties %v", release, w.player("a").Penalties)
	}
	repeat := &playerflow.ReleaseMembers{Instance: g, Players: []string{"a", "zoe"}}
	w.must(repeat)
	if strings.Join(repeat.Unknown, " ") != "zoe" {
		t.Errorf("a repeat: %+v", repeat)
	}
}

// TestLossOfMany: when half of the players lose their connections together, that is no offence.
func TestLossOfMany(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("a", "b", "c", "d")
	g := w.play(false, flow.ReconnectOptional, "a", "b", "c", "d")
	w.connect(g, "a", "b", "c", "d")
	w.lose(g, w.member("a").Session)
	w.pass(20 * time.Second)
	w.lose(g, w.member("b").Session)
	w.pass(4 * time.Minute)
	if len(w.player("a").Penalties)+len(w.player("b").Penalties) != 0 {
		t.Error("they were punished")
	}
	w.lose(g, w.member("c").Session)
	w.pass(4 * time.Minute)
	if p := w.player("c").Penalties; len(p) != 1 || p[0].Kind != flow.Leave || p[0].Reason != flow.ReconnectExpired {
		t.Errorf("penalties %+v", p)
	}
}

// TestServerThatIsNeverReady: with manualReady the timer for a host runs until Game.Ready. Until then no member can play, and with REQUIRED
// none could leave.
func TestServerThatIsNeverReady(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.ManualReady, c.Games.AbsoluteTimeout = true, 0 })
	w.party("me")
	w.must(&playerflow.SetReady{Caller: w.as("me"), Ready: true})
	g := w.play(false, flow.ReconnectRequired, "me")
	w.restart()
	before := w.seq("me")
	w.pass(119 * time.Second)
	w.wantTold("me", before, "")
	w.pass(2 * time.Second)
	w.wantTold("me", before, "GameSessionChanged FailedToAllocateGameInstance:TIMEOUT")
	w.wantPhase("me", flow.InParty)
	r, _ := w.cell.playerflow.Flow.Party(w.keys("me").Party)
	if !w.cell.playerflow.Flow.Parties.Get(r).Members[0].Ready {
		t.Error("an allocation that failed made a player not ready")
	}
	if host := w.gameOf(g); host.Status != session.Terminating {
		t.Errorf("the game session is %s", host.Status)
	}

	w.online("other")
	g = w.play(false, flow.ReconnectRequired, "other")
	w.pass(time.Minute)
	w.must(&playerflow.ReadyGame{Instance: g})
	w.pass(2 * time.Minute)
	w.wantPhase("other", flow.InGame)
}

// TestNeverReadyAndAgain: parties that search again because a server did not become ready keep the studio's advice on their search.
func TestNeverReadyAndAgain(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.ManualReady, c.Games.Requeue = true, true })
	said := flow.Advice{Attributes: `{"skill":3}`, Players: []flow.PlayerAdvice{{Player: "a", Data: "data of a"}}}
	if refused := w.propose(testQueue, w.enterWith(said, "a"), w.search("b")); refused != nil {
		t.Fatal(refused)
	}
	w.startMatch(w.instance(w.keys("a").Game).Placement)
	w.pass(3 * time.Minute)
	w.wantPhase("a", flow.Matchmaking)
	if got := w.skillOf(w.keys("a").Ticket, "a"); got != 3 {
		t.Errorf("the skill is %v", got)
	}
	if refused := w.propose(testQueue, w.keys("a").Ticket, w.keys("b").Ticket); refused != nil {
		t.Fatal(refused)
	}
	g := w.keys("a").Game
	w.startMatch(w.instance(g).Placement)
	w.must(&playerflow.ReadyGame{Instance: g})
	if got := w.dataOf(w.member("a").Session); got != "data of a" {
		t.Errorf("PlayerData is %q", got)
	}
	if n := w.cell.playerflow.Flow.Advices.Len(); n != 0 {
		t.Errorf("%d are kept", n)
	}
}

// A game server may seat again only players who were in its game. These commit no offence afterwards: not by staying away,
// not by leaving, and not through the server's reports.
func TestGameServerSeatsNoStrangers(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("a", "b", "stranger", "friend")
	g := w.play(false, flow.ReconnectOptional, "a", "b") // four seats
	for _, player := range []string{"a", "b"} {
		w.must(&playerflow.ConnectMember{Instance: g, PlayerSession: w.member(player).Session})
	}
	w.must(&playerflow.ReleaseMembers{Instance: g, Players: []string{"a"}})
	add := &playerflow.AddMembers{Instance: g, ByGame: true, Players: []playerflow.PlannedPlayer{{Player: "stranger"}, {Player: "a"}}}
	w.must(add)
	if fmt.Sprint(add.Failed) != "[{stranger JOIN_NOT_ALLOWED}]" || w.player("stranger").Membership() != 0 || !w.member("a").Unasked {
		t.Fatalf("failed: %v; a %+v", add.Failed, w.member("a"))
	}
	w.must(&playerflow.RemoveMembers{Instance: g, Players: []playerflow.RemovedMember{{Player: "a", Reason: flow.RemovedAFK, Penalise: true}, {Player: "stranger", Reason: flow.RemovedAFK, Penalise: true}}})
	w.must(add)
	w.must(&playerflow.ConnectMember{Instance: g, PlayerSession: w.member("a").Session})
	w.must(&playerflow.DisconnectMember{Instance: g, PlayerSession: w.member("a").Session, Quit: true})
	for _, player := range []string{"a", "stranger"} {
		if p := w.player(player).Penalties; len(p) != 0 {
			t.Errorf("%s was penalised: %v", player, p)
		}
	}
	named := &playerflow.AddMembers{Instance: g, Players: []playerflow.PlannedPlayer{{Player: "friend"}}} // by the studio's backend
	w.must(named)
	if len(named.Failed) != 0 || w.member("friend").Unasked {
		t.Errorf("failed: %v; friend %+v", named.Failed, w.member("friend"))
	}
}
