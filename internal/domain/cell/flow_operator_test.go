package cell

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/playerflow/inspection"
)

// substates are situations of a player named "me" beyond the five phases.
var substates = map[string]func(w *flowWorld){
	"held": func(w *flowWorld) {
		w.search("me", "friend")
		w.offline("friend")
	},
	"asked to accept": func(w *flowWorld) {
		red, blue := w.searchIn(acceptQueue, "me", "friend"), w.searchIn(acceptQueue, "other")
		if refused := w.propose(acceptQueue, red, blue); refused != nil {
			w.t.Fatal(refused)
		}
	},
	"matched": func(w *flowWorld) {
		red, blue := w.search("me", "friend"), w.search("other")
		if refused := w.propose(testQueue, red, blue); refused != nil {
			w.t.Fatal(refused)
		}
	},
	"playing": func(w *flowWorld) {
		w.party("me", "friend")
		w.connect(w.play(false, flow.ReconnectOptional, "me", "friend"), "me", "friend")
	},
	"disconnected": func(w *flowWorld) {
		w.party("me", "friend")
		g := w.play(false, flow.ReconnectOptional, "me", "friend")
		w.connect(g, "me", "friend")
		w.lose(g, w.member("me").Session)
	},
	"away": func(w *flowWorld) {
		w.party("me", "friend")
		w.offline("me")
	},
}

// eachSituation runs f in a world of its own for each phase and substate.
func eachSituation(t *testing.T, f func(t *testing.T, w *flowWorld)) {
	for phase := range phases {
		t.Run(fmt.Sprintf("S%d", phase), func(t *testing.T) {
			w := newFlowWorld(t, nil)
			phases[phase](w)
			f(t, w)
		})
	}
	for name, begin := range substates {
		t.Run(name, func(t *testing.T) {
			w := newFlowWorld(t, nil)
			begin(w)
			f(t, w)
		})
	}
}

// TestForceReleaseKeepsInvariants releases every set of keys in every situation: the requested keys are gone, and every invariant
// holds.
func TestForceReleaseKeepsInvariants(t *testing.T) {
	for set := 1; set < 8; set++ {
		cmd := playerflow.ForceRelease{Player: "me", Party: set&1 != 0, Ticket: set&2 != 0, Game: set&4 != 0}
		t.Run(fmt.Sprintf("party=%t ticket=%t game=%t", cmd.Party, cmd.Ticket, cmd.Game), func(t *testing.T) {
			eachSituation(t, func(t *testing.T, w *flowWorld) {
				before, rev := w.keys("me"), w.player("me").Rev
				release := cmd
				w.must(&release)
				after := w.keys("me")
				want := before
				if cmd.Party {
					want.Party, want.Ticket = flow.Keys{}.Party, flow.Keys{}.Ticket // without its party no member searches
				}
				if cmd.Ticket {
					want.Ticket = flow.Keys{}.Ticket
				}
				if cmd.Game {
					want.Game = flow.Keys{}.Game
				}
				if after != want {
					t.Errorf("keys %+v became %+v, want %+v", before, after, want)
				}
				if changed := after != before; w.player("me").Rev-rev != map[bool]uint64{true: 1}[changed] {
					t.Errorf("the revision rose from %d to %d; keys changed: %t", rev, w.player("me").Rev, changed)
				}
				w.check()
			})
		})
	}
}

// TestEverythingThatHoldsAPlayerEnds: in every situation each key has a holding, and each holding that ends by time has a timer, too.
// A player who is released from a party leaves a party that continues: the others are not told that it has ended.
func TestReleaseFromAPartyIsNoEndOfIt(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.search("me", "mate")
	me, mate := w.seq("me"), w.seq("mate")
	w.must(&playerflow.ForceRelease{Player: "me", Party: true})
	w.wantTold("me", me, "GameSessionChanged LeftMatchmaking:MEMBER_REMOVED RemovedFromParty:SHUT_DOWN")
	w.wantTold("mate", mate, "GameSessionChanged LeftMatchmaking:MEMBER_REMOVED PartyChanged:LEFT")
	w.wantPhase("mate", flow.InParty)
}

func TestEverythingThatHoldsAPlayerEnds(t *testing.T) {
	eachSituation(t, func(t *testing.T, w *flowWorld) {
		v := w.cell.View()
		holdings, _ := v.ExplainStuck("me", w.now)
		held := map[string]inspection.Holding{}
		for _, h := range holdings {
			held[h.Key] = h
		}
		keys := w.keys("me")
		for key, present := range map[string]bool{"PARTY_ID": !keys.Party.IsZero(), "MATCHMAKING_ID": !keys.Ticket.IsZero(), "GAME_INSTANCE_ID": !keys.Game.IsZero()} {
			if _, ok := held[key]; ok != present {
				t.Errorf("%s is present: %t; held: %+v", key, present, held)
			}
		}
		timers := v.FlowTimers("me", w.now)
		for _, h := range holdings {
			found := h.Until == 0
			for _, x := range timers {
				found = found || x.Until == h.Until
			}
			if !found {
				t.Errorf("%+v is none of the timers %+v", h, timers)
			}
		}
		for i, x := range timers {
			if x.Kind == "" || x.Of == "" || x.Then == "" || x.Until < w.now || i > 0 && x.Until < timers[i-1].Until {
				t.Errorf("timer %+v", x)
			}
		}
	})
}

// TestHeldSearchSaysWhoHoldsIt: an operator sees which member is away, and when that ends the search of all members.
func TestHeldSearchSaysWhoHoldsIt(t *testing.T) {
	w := newFlowWorld(t, nil)
	substates["held"](w)
	v := w.cell.View()
	holdings, _ := v.ExplainStuck("me", w.now)
	h := holdings[0]
	if h.Status != "HELD by friend" || h.Ends != "offlineGrace" || h.Until != w.now.Add(w.config.Search.OfflineGrace) {
		t.Errorf("%+v", h)
	}
}

// TestTimersOfADisconnectedPlayer lists them by name.
func TestTimersOfADisconnectedPlayer(t *testing.T) {
	w := newFlowWorld(t, nil)
	substates["disconnected"](w)
	names := func() string {
		v := w.cell.View()
		var all []string
		for _, x := range v.FlowTimers("me", w.now) {
			if x.Left != 0 {
				x.Kind += " stopped"
			}
			all = append(all, x.Kind)
		}
		return strings.Join(all, ", ")
	}
	if got, want := names(), "reconnectWindow, absoluteTimeout, sessionIdleExpiry"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	g := w.gameOf(w.keys("me").Game)
	r, _ := w.cell.hosting.Fleets.Process(processKey(g.ProcessID))
	w.must(&hosting.LoseLink{Process: processKey(g.ProcessID), Link: w.cell.hosting.Fleets.Processes.Get(r).Link})
	if got, want := names(), "reconnectWindow stopped, linkGrace, absoluteTimeout, sessionIdleExpiry"; got != want {
		t.Errorf("with a host that is suspected to be lost: got %s, want %s", got, want)
	}
	v := w.cell.View()
	holdings, _ := v.ExplainStuck("me", w.now)
	if h := holdings[0]; !strings.HasPrefix(h.Ends, "linkGrace") || h.Until == 0 {
		t.Errorf("%+v", h)
	}
}

// TestFindPlayers: the search filters players and examines no more than its limit.
func TestFindPlayers(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("idle")
	w.party("old")
	w.pass(time.Minute)
	w.party("new")
	w.online("player")
	g := w.play(false, flow.ReconnectOptional, "player")
	w.connect(g, "player")
	key := processKey(w.gameOf(g).ProcessID)
	r, _ := w.cell.hosting.Fleets.Process(key)
	w.must(&hosting.LoseLink{Process: key, Link: w.cell.hosting.Fleets.Processes.Get(r).Link})
	find := func(f inspection.PlayerFilter, limit, most int) (names string) {
		v := w.cell.View()
		for after, more := flow.PlayerRef(0), true; more; {
			var page []inspection.PlayerLine
			page, after, more = v.FindPlayers(&f, w.now, after, limit, most)
			if len(page) > limit {
				t.Errorf("%d of at most %d", len(page), limit)
			}
			for _, x := range page {
				names += x.ID + " "
			}
		}
		return strings.TrimSpace(names)
	}
	inParty := []flow.Phase{flow.InParty}
	for _, c := range []struct {
		filter inspection.PlayerFilter
		want   string
	}{
		{inspection.PlayerFilter{}, "idle old new player"},
		{inspection.PlayerFilter{Phases: inParty}, "old new"},
		{inspection.PlayerFilter{Phases: inParty, OlderThan: time.Minute}, "old"},
		{inspection.PlayerFilter{Phases: []flow.Phase{flow.InGame, flow.InGameWithParty}}, "player"},
		{inspection.PlayerFilter{OlderThan: time.Second}, "idle old"},
		{inspection.PlayerFilter{HostLost: new(true)}, "player"},
		{inspection.PlayerFilter{HostLost: new(false)}, "idle old new"},
	} {
		for limit := 1; limit <= 5; limit++ {
			for most := 1; most <= 5; most++ {
				if got := find(c.filter, limit, most); got != c.want {
					t.Errorf("%+v, pages of %d, steps of %d: got %q, want %q", c.filter, limit, most, got, c.want)
				}
			}
		}
	}
}

// TestSurvey: with steps of any size a survey counts all records and finds the same faults as an audit.
func TestSurvey(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("idle")
	w.search("a", "b")
	w.now = w.now.Add(20 * time.Second)
	w.search("c")
	w.online("d", "e")
	g := w.play(false, flow.ReconnectOptional, "d", "e")
	w.connect(g, "d")
	for most := 1; most < 10; most++ {
		s := inspection.NewSurvey()
		for {
			v := w.cell.View()
			if v.Survey(s, w.now, most) {
				break
			}
		}
		ages := s.Ages[testQueue]
		if s.Players[flow.Idle] != 1 || s.Players[flow.Matchmaking] != 3 || s.Players[flow.InGame] != 2 || s.Violated != 0 ||
			s.Searches[inspection.SearchKind{Queue: testQueue, Status: flow.Queued}] != 2 || s.Games[inspection.GameKind{Queue: "", Status: flow.InstanceActive}] != 1 ||
			s.Members[flow.MemberActive] != 1 || s.Members[flow.MemberReserved] != 1 ||
			ages.Count != 2 || ages.Oldest != 20*time.Second || ages.UpTo != [...]int{1, 1, 2, 2, 2, 2, 2} {
			t.Errorf("steps of %d: %+v, ages %+v", most, s, ages)
		}
	}
	party, _ := w.cell.playerflow.Flow.Party(w.keys("a").Party)
	expires := w.cell.playerflow.Flow.Parties.Get(party).Search.Expires
	w.cell.playerflow.Flow.Parties.Mut(party).Search.Expires = 0 // as no command ever does
	v := w.cell.View()
	s, want := inspection.NewSurvey(), v.Audit()
	v.Survey(s, w.now, 1000)
	if fmt.Sprint(s.Violations) != fmt.Sprint(want) || len(want) != 1 || s.Violated != 1 {
		t.Errorf("got %v, want %v", s.Violations, want)
	}
	w.cell.playerflow.Flow.Parties.Mut(party).Search.Expires = expires
}

// A queue is closed by its name. An unknown name closes nothing and returns an error.
func TestSetQueueKnowsItsQueues(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.queues()
	w.refused(&playerflow.SetQueue{Name: "rankd", Closed: true}, flow.QueueNotFound)
	w.must(&playerflow.SetQueue{Name: testQueue, Closed: true})
	w.must(&matchmaking.DeleteConfiguration{Name: testQueue})
	w.must(&playerflow.SetQueue{Name: testQueue})
	w.refused(&playerflow.SetQueue{Name: testQueue, Closed: true}, flow.QueueNotFound)
}

// The studio's backend may set players' blocks before the players log in for the first time.
func TestBlocksBeforeTheFirstLogin(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.refused(&playerflow.SetBlocks{Player: "no name", Blocked: []string{"ann"}}, flow.InvalidArgument)
	w.refused(&playerflow.SetBlocks{Player: "zoe", Blocked: []string{"no name"}}, flow.InvalidArgument)
	w.must(&playerflow.SetBlocks{Player: "zoe", Blocked: []string{"ann"}})
	w.online("ann", "zoe")
	w.must(&playerflow.CreateParty{Caller: w.as("ann"), ID: flow.PartyID(w.id())})
	w.must(&playerflow.SendInvite{Caller: w.as("ann"), ID: flow.InviteID(w.id()), Target: "zoe"})
	if n := len(w.cell.playerflow.Flow.InvitesTo("zoe")); n != 0 {
		t.Errorf("zoe sees %d invites of a player whom she blocks", n)
	}
}
