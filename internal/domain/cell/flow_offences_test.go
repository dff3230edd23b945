package cell

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/playerflow/inspection"
)

// offences returns the places of players on the scales.
func (w *flowWorld) offences(players ...string) string {
	text := ""
	for _, player := range players {
		for _, p := range w.player(player).Penalties {
			text += fmt.Sprintf("%s %s:%d ", player, p.Kind, p.Level)
		}
	}
	return text
}

// While a match waits for its answers, every way in which a player ends the search counts as declining. Acts of an operator do not.
func TestEndingTheSearchCountsAsDeclining(t *testing.T) {
	for name, row := range map[string]struct {
		do   func(w *flowWorld)
		want string
	}{
		"leaves the party": {func(w *flowWorld) { w.must(&playerflow.LeaveParty{Caller: w.as("b")}) }, "b DODGE:1 "},
		"logs out":         {func(w *flowWorld) { w.must(&playerflow.Logout{Caller: w.as("b")}) }, "b DODGE:1 "},
		"is not ready":     {func(w *flowWorld) { w.must(&playerflow.SetReady{Caller: w.as("b"), Ready: false}) }, "b DODGE:1 "},
		"kicks":            {func(w *flowWorld) { w.must(&playerflow.KickPlayer{Caller: w.as("a"), Target: "b"}) }, "a DODGE:1 "},
		"disbands":         {func(w *flowWorld) { w.must(&playerflow.DisbandParty{Caller: w.as("a")}) }, "a DODGE:1 "},
		"is released":      {func(w *flowWorld) { w.must(&playerflow.ForceRelease{Player: "b", Party: true, Ticket: true}) }, ""},
		"is shut down":     {func(w *flowWorld) { w.must(&playerflow.ShutDownParty{Party: w.keys("a").Party}) }, ""},
		"is closed": {func(w *flowWorld) {
			w.must(&playerflow.SetQueue{Name: acceptQueue, Closed: true})
			w.must(&kernel.Tick{})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFlowWorld(t, nil)
			w.searchIn(acceptQueue, "a", "b")
			w.searchIn(acceptQueue, "c")
			row.do(w) // during a search this is no offence
			if got := w.offences("a", "b", "c"); got != "" {
				t.Errorf("without a match: %s", got)
			}

			w = newFlowWorld(t, nil)
			red, blue := w.searchIn(acceptQueue, "a", "b"), w.searchIn(acceptQueue, "c")
			if refused := w.propose(acceptQueue, red, blue); refused != nil {
				t.Fatal(refused)
			}
			row.do(w)
			if got := w.offences("a", "b", "c"); got != row.want {
				t.Errorf("offences %q, want %q", got, row.want)
			}
		})
	}
}

// A player cannot return to a game whose host is about to end, so staying away is not penalised.
func TestNoOffenceInAGameThatEnds(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.EndingGrace, c.Games.ReconnectWindow = 10*time.Minute, time.Minute })
	w.online("lost", "never", "quits")
	g := w.play(false, flow.ReconnectOptional, "lost", "never", "quits")
	w.connect(g, "lost", "quits")
	w.lose(g, w.member("lost").Session)
	w.must(&hosting.TerminateGameSession{ID: w.gameOf(g).ID})
	w.must(&playerflow.LeaveGame{Caller: w.as("quits"), Instance: g})
	w.must(&hosting.ReportHealth{Process: processKey(w.gameOf(g).ProcessID), Healthy: true})
	for range 20 {
		w.pass(20 * time.Second)
		if !w.instance(g).Live() {
			break
		}
	}
	if got := w.offences("lost", "never", "quits"); got != "quits LEAVE:1 " {
		t.Errorf("offences %q", got)
	}
}

// A player who could not answer or connect because the service was down, and has not returned yet, commits no offence.
func TestNoOffenceBehindARestart(t *testing.T) {
	w := newFlowWorld(t, nil)
	if refused := w.propose(acceptQueue, w.searchIn(acceptQueue, "a"), w.searchIn(acceptQueue, "b")); refused != nil {
		t.Fatal(refused)
	}
	w.online("c")
	g := w.play(false, flow.ReconnectOff, "c")
	w.now += 600_000
	w.must(&kernel.Resume{})
	w.must(&hosting.ConnectProcess{Process: processKey(w.gameOf(g).ProcessID), Link: 8})
	w.attach("b")
	w.pass(59 * time.Second) // of a minute to come back
	w.wantPhase("a", flow.InParty)
	w.pass(2 * time.Second)
	if got := w.offences("a", "b", "c"); got != "b DODGE:1 " {
		t.Errorf("offences %q: b was back, and has not answered", got)
	}
}

// The timers of searches, answers and hosts stop while the service is down.
func TestSearchesOverADowntime(t *testing.T) {
	w := newFlowWorld(t, nil)
	searching := w.search("a")
	red, blue := w.searchIn(acceptQueue, "b"), w.searchIn(acceptQueue, "c")
	if refused := w.propose(testQueue, w.search("d"), w.search("e")); refused != nil {
		t.Fatal(refused)
	}
	g := w.keys("d").Game
	w.pass(100 * time.Second)
	if refused := w.propose(acceptQueue, red, blue); refused != nil {
		t.Fatal(refused)
	}
	w.pass(10 * time.Second)
	w.now += domain.Time(20 * time.Minute / time.Millisecond)
	w.must(&kernel.Resume{})
	for _, player := range []string{"a", "b", "c", "d", "e"} {
		w.attach(player)
		w.wantPhase(player, map[bool]flow.Phase{true: flow.InGameWithParty, false: flow.Matchmaking}[player > "c"])
	}
	w.check()
	w.must(&playerflow.AnswerMatch{Caller: w.as("b"), Ticket: red, Accept: true})
	w.must(&playerflow.AnswerMatch{Caller: w.as("c"), Ticket: blue, Accept: true})
	w.wantPhase("b", flow.InGameWithParty)
	if x := w.instance(g); x.Status != flow.InstancePending {
		t.Errorf("the game that waits for a host is %s", x.Status)
	}
	w.pass(189 * time.Second)
	w.wantPhase("a", flow.Matchmaking)
	w.pass(2 * time.Second)
	w.wantPhase("a", flow.InParty)
	if s := w.ticket(searching).Status.String(); s != "TIMED_OUT" {
		t.Errorf("the ticket is %s", s)
	}
}

// When half of the players lose their connections together, that is no offence, not even for players who lost their seats with it.
func TestLossOfManyWithoutReturn(t *testing.T) {
	for name, change := range map[string]func(*flow.Config){
		"OFF":              func(c *flow.Config) { c.Games.Reconnect = flow.ReconnectOff },
		"too many already": func(c *flow.Config) { c.Games.DisconnectsMax = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFlowWorld(t, change)
			w.online("a", "b", "c", "d")
			g := w.play(false, 0, "a", "b", "c", "d")
			w.connect(g, "a", "b", "c", "d")
			if name != "OFF" {
				for _, player := range []string{"a", "b", "c", "d"} {
					w.lose(g, w.member(player).Session)
					w.must(&playerflow.GetHostConnectionDetails{Caller: w.as(player), Instance: g})
					w.connect(g, player)
					w.pass(40 * time.Second)
					w.must(&hosting.ReportHealth{Process: processKey(w.gameOf(g).ProcessID), Healthy: true})
				}
			}
			w.lose(g, w.member("a").Session)
			if got := w.offences("a", "b", "c", "d"); got != "a LEAVE:1 " {
				t.Errorf("one alone: %q", got)
			}
			w.pass(10 * time.Second)
			w.lose(g, w.member("b").Session)
			if got := w.offences("a", "b", "c", "d"); got != "" {
				t.Errorf("two of four: %q", got)
			}
			w.pass(40 * time.Second)
			w.must(&hosting.ReportHealth{Process: processKey(w.gameOf(g).ProcessID), Healthy: true})
			w.lose(g, w.member("c").Session)
			if got := w.offences("a", "b", "c", "d"); got != "c LEAVE:1 " {
				t.Errorf("and later one more: %q", got)
			}
		})
	}
}

// A player who has already returned counts among those who lost their connections together: otherwise quick clients would leave the slow ones to be
// penalised. What the returned player does later is still an offence.
func TestLossOfManyCountsThoseWhoReturned(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Games.ReconnectWindow = 20 * time.Second })
	w.online("quick", "slow", "third", "fourth")
	g := w.play(false, flow.ReconnectOptional, "quick", "slow", "third", "fourth")
	w.connect(g, "quick", "slow", "third", "fourth")
	w.lose(g, w.member("quick").Session)
	w.must(&playerflow.GetHostConnectionDetails{Caller: w.as("quick"), Instance: g})
	w.connect(g, "quick")
	w.pass(5 * time.Second)
	w.lose(g, w.member("slow").Session)
	w.pass(21 * time.Second)
	if _, playing := w.cell.playerflow.Flow.Instance(g); !playing || !w.keys("slow").Game.IsZero() {
		t.Fatal("the window has not ended")
	}
	if got := w.offences("quick", "slow"); got != "" {
		t.Errorf("offences %q: two of four lost their connections within five seconds", got)
	}
	w.must(&playerflow.LeaveGame{Caller: w.as("quick"), Instance: g})
	if got := w.offences("quick"); got != "quick LEAVE:1 " {
		t.Errorf("offences %q: the player has left a game", got)
	}
}

// A further offence does not shorten a lock that an operator or the studio has set.
func TestOffenceKeepsTheLongerLock(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Penalties.Mode = flow.PenaltiesEnforced })
	w.online("me")
	g := w.play(false, flow.ReconnectOptional, "me")
	w.connect(g, "me")
	until := w.now.Add(7 * 24 * time.Hour)
	w.must(&playerflow.SetPenalty{Player: "me", Penalty: flow.Penalty{Kind: flow.Leave, Level: 1, Until: until}})
	w.must(&playerflow.LeaveGame{Caller: w.as("me"), Instance: g})
	if p := w.player("me").Penalties; len(p) != 1 || p[0].Level != 2 || p[0].Until != until {
		t.Errorf("%+v, want level 2 until %d", p, until)
	}
}

// The level is a position on the scale: offences beyond its last step do not count as further steps, so that each time without an offence leads one step down.
func TestLevelStaysOnTheScale(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Penalties.Mode = flow.PenaltiesEnforced })
	w.online("me")
	offend := func(want time.Duration) {
		t.Helper()
		g := w.play(false, flow.ReconnectOptional, "me")
		w.must(&playerflow.LeaveGame{Caller: w.as("me"), Instance: g})
		p := w.player("me").Penalties[0]
		if got := max(0, p.Until.Sub(w.now)); got != want {
			t.Errorf("locked for %s at level %d, want %s", got, p.Level, want)
		}
	}
	steps := w.cell.playerflow.Config.Penalties.DodgeSteps
	for i := range len(steps) + 3 {
		offend(steps[min(i, len(steps)-1)])
	}
	if got, want := w.offences("me"), fmt.Sprintf("me DODGE:%d ", len(steps)); got != want {
		t.Errorf("offences %q, want %q", got, want)
	}
	w.pass(2 * w.cell.playerflow.Config.Penalties.DodgeDecay)
	offend(steps[len(steps)-2])
}

// A player with several locks learns when the last of them ends.
func TestRefusalNamesTheLastLock(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("me")
	w.must(&playerflow.SetPenalty{Player: "me", Penalty: flow.Penalty{Kind: flow.Requeue, Level: 1, Until: w.now.Add(time.Minute)}})
	until := w.now.Add(time.Hour)
	w.must(&playerflow.SetPenalty{Player: "me", Penalty: flow.Penalty{Kind: flow.ByOperator, Level: 1, Until: until}})
	w.queues()
	enter := &playerflow.EnterMatchmaking{Caller: w.as("me"), Ticket: domain.TicketID(w.id()), Party: flow.PartyID(w.id()), Queue: testQueue}
	if r := w.refused(enter, flow.MatchmakingLocked); r.Until != until || r.Lock.Kind != flow.ByOperator {
		t.Errorf("%+v, want a lock until %d", r.Lock, until)
	}
}

// Pardoning an offence does not remove a lock that an operator or the studio had set before.
func TestPardonKeepsTheLongerLock(t *testing.T) {
	for _, pardoned := range []bool{false, true} { // by the loss of others, or else by the studio
		w := newFlowWorld(t, func(c *flow.Config) {
			c.Penalties.Mode, c.Games.Reconnect = flow.PenaltiesEnforced, flow.ReconnectOff
		})
		w.online("a", "b")
		g := w.play(false, 0, "a", "b")
		w.connect(g, "a", "b")
		until := w.now.Add(7 * 24 * time.Hour)
		w.must(&playerflow.SetPenalty{Player: "a", Penalty: flow.Penalty{Kind: flow.Leave, Level: 1, Until: until}})
		if pardoned {
			w.lose(g, w.member("a").Session)
			w.lose(g, w.member("b").Session)
		} else {
			w.must(&playerflow.LeaveGame{Caller: w.as("a"), Instance: g})
			p := w.player("a").Penalties[0]
			w.must(&playerflow.DecidePenalty{Player: "a", Kind: p.Kind, Since: p.Since, Given: p.Level, Until: p.Until, Clear: true})
		}
		if p := w.player("a").Penalties; len(p) != 1 || p[0].Level != 1 || p[0].Until != until {
			t.Errorf("pardoned %t: %+v, want level 1 until %d", pardoned, p, until)
		}
	}
}

// A player who cannot search now is not offered the search, with a party or without one.
func TestActionsOfAPlayerWithoutAParty(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.queues()
	w.online("me")
	may := func() bool {
		r, _ := w.cell.playerflow.Flow.Player("me")
		return w.cell.playerflow.AllowedActions(r)&flow.CanEnterMatchmaking != 0
	}
	enter := func() kernel.Command {
		return &playerflow.EnterMatchmaking{Caller: w.as("me"), Ticket: domain.TicketID(w.id()), Party: flow.PartyID(w.id()), Queue: testQueue}
	}
	if !may() {
		t.Error("searching is possible")
	}
	w.must(&playerflow.SetPenalty{Player: "me", Penalty: flow.Penalty{Kind: flow.ByOperator, Level: 1, Until: w.now.Add(time.Minute)}})
	if w.refused(enter(), flow.MatchmakingLocked); may() {
		t.Error("searching is locked")
	}
	w.pass(61 * time.Second)
	w.offline("me")
	if w.refused(enter(), flow.MembersOffline); may() {
		t.Error("no member is present")
	}
}

// A player cannot escape a lock by staying away until the service would forget the player.
func TestLocksOutliveAbsence(t *testing.T) {
	for _, kind := range []flow.PenaltyKind{flow.ByOperator, flow.Leave, flow.Requeue} {
		w := newFlowWorld(t, func(c *flow.Config) { c.Penalties.Mode = flow.PenaltiesEnforced })
		w.queues()
		w.online("me")
		until := w.now.Add(60 * 24 * time.Hour)
		w.must(&playerflow.SetPenalty{Player: "me", Penalty: flow.Penalty{Kind: kind, Level: 1, Until: until}})
		w.must(&playerflow.Logout{Caller: w.as("me")})
		w.pass(45 * 24 * time.Hour)
		w.login("me")
		w.attach("me")
		enter := &playerflow.EnterMatchmaking{Caller: w.as("me"), Ticket: domain.TicketID(w.id()), Party: flow.PartyID(w.id()), Queue: testQueue}
		if r := w.refused(enter, flow.MatchmakingLocked); r != nil && r.Until != until {
			t.Errorf("%s: locked until %d, want %d", kind, r.Until, until)
		}
		w.must(&playerflow.Logout{Caller: w.as("me")})
		w.pass(50 * 24 * time.Hour)
		if _, known := w.cell.playerflow.Flow.Player("me"); known {
			t.Errorf("%s: 30 days after the player was there last, and behind the lock, the player is still known", kind)
		}
	}
}

// A player is neither shown nor told of a lock that is only reported to the studio.
func TestReportedLocksAreNotShown(t *testing.T) {
	for _, mode := range []flow.PenaltyMode{flow.PenaltiesReported, flow.PenaltiesEnforced} {
		for _, kind := range []flow.PenaltyKind{flow.Dodge, flow.Leave, flow.AFK, flow.Requeue, flow.ByOperator} {
			w := newFlowWorld(t, func(c *flow.Config) { c.Penalties.Mode = mode })
			w.queues()
			w.online("me")
			id := w.subscribe(func(s *flow.Subscription) { s.Types = []string{"OnPenaltyApplied", "OnPenaltyLifted"} })
			locks := mode == flow.PenaltiesEnforced || kind == flow.Requeue || kind == flow.ByOperator
			told := ""
			if locks {
				told = "PenaltyApplied PenaltyLifted"
			}

			since := w.seq("me")
			w.must(&playerflow.SetPenalty{Player: "me", Penalty: flow.Penalty{Kind: kind, Level: 1, Until: w.now.Add(time.Hour)}})
			v := w.cell.View()
			if s, _ := v.FlowOf("me", w.now); len(s.Locks) == 1 != locks {
				t.Errorf("mode %d, %s: the player sees the locks %+v", mode, kind, s.Locks)
			}
			timers := v.FlowTimers("me", w.now)
			if slices.ContainsFunc(timers, func(x inspection.Timer) bool { return x.Then == "the player may search again" }) != locks {
				t.Errorf("mode %d, %s: the player's timers are %+v", mode, kind, timers)
			}
			w.must(&playerflow.SetPenalty{Player: "me", Penalty: flow.Penalty{Kind: kind}})
			got := strings.Join(slices.DeleteFunc(strings.Fields(w.told("me", since)), func(event string) bool { return !strings.HasPrefix(event, "Penalty") }), " ")
			if got != told {
				t.Errorf("mode %d, %s: the player is told %q, want %q", mode, kind, got, told)
			}
			if got, _ := w.heard(id, 0); got != "PenaltyApplied:me PenaltyLifted:me" {
				t.Errorf("mode %d, %s: the studio hears %q", mode, kind, got)
			}
		}
	}
}

// TestOperatorsRequeueLock: an operator sets and removes a player's penalty for repeatedly searching and leaving.
func TestOperatorsRequeueLock(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Penalties.Mode = flow.PenaltiesEnforced })
	w.queues()
	w.online("me")
	locked := func(want ...flow.Penalty) {
		t.Helper()
		all := w.cell.playerflow.Locks(w.player("me"), w.now)
		for i := range all {
			all[i].Since, all[i].Reason = 0, 0
		}
		if !slices.Equal(all, want) {
			t.Errorf("locks %+v, want %+v", all, want)
		}
	}
	leave := func() {
		w.must(&playerflow.EnterMatchmaking{Caller: w.as("me"), Ticket: domain.TicketID(w.id()), Party: flow.PartyID(w.id()), Queue: testQueue})
		w.must(&playerflow.LeaveMatchmaking{Caller: w.as("me")})
	}
	level := flow.LevelAt(flow.Requeue, 1)
	w.must(&playerflow.SetPenalty{Player: "me", Penalty: flow.Penalty{Kind: flow.Requeue, Level: level, Until: w.now.Add(time.Minute)}})
	locked(flow.Penalty{Kind: flow.Requeue, Level: level, Until: w.now.Add(time.Minute)})
	w.pass(2 * time.Minute)
	leave()
	leave()
	locked()
	leave()
	locked(flow.Penalty{Kind: flow.Requeue, Level: level + 1, Until: w.now.Add(time.Minute)}) // the third step of 15 s that double

	before := w.seq("me")
	w.must(&playerflow.SetPenalty{Player: "me", Penalty: flow.Penalty{Kind: flow.Requeue}})
	locked()
	w.wantTold("me", before, "PenaltyLifted")
	before = w.seq("me")
	w.must(&playerflow.SetPenalty{Player: "me", Penalty: flow.Penalty{Kind: flow.Requeue}})
	w.wantTold("me", before, "")
	leave()
	leave()
	leave()
	locked(flow.Penalty{Kind: flow.Requeue, Level: 1, Until: w.now.Add(15 * time.Second)})

	w.must(&playerflow.SetPenalty{Player: "me", Penalty: flow.Penalty{Kind: flow.Requeue, Level: flow.LevelAt(flow.Requeue, 0)}})
	locked()
	w.pass(11 * time.Minute) // as after a lock of its own, the place is forgotten
	leave()
	leave()
	leave()
	locked(flow.Penalty{Kind: flow.Requeue, Level: 1, Until: w.now.Add(15 * time.Second)})
}
