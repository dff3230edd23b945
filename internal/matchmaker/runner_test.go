package matchmaker

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/archive/archivetest"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/journal/journaltest"
	"github.com/musterhq/muster/internal/waittest"
)

const duel = `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number"}],
"teams":[{"name":"red","minPlayers":1,"maxPlayers":1},{"name":"blue","minPlayers":1,"maxPlayers":1}],
"rules":[{"name":"Near","type":"distance","measurements":["max(flatten(teams[*].players.attributes[skill]))"],
"referenceValue":"min(flatten(teams[*].players.attributes[skill]))","maxDistance":50}]}`

// house is an engine with a runner on it.
type house struct {
	*testing.T
	memory *journaltest.Memory
	old    *archivetest.Memory
	disk   journal.Journal
	past   archive.Archive
	engine *engine.Engine
	runner *Runner
}

func newHouse(t *testing.T) *house {
	h := &house{T: t, memory: journaltest.NewMemory(1), old: archivetest.NewMemory(1)}
	h.open()
	t.Cleanup(h.close)
	h.rules("duel", duel)
	h.do(&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{Name: "ranked", RuleSet: "duel", RequestTimeout: time.Hour, Standalone: true}})
	return h
}

func (h *house) open() {
	h.Helper()
	var err error
	if h.disk, err = h.memory.Open(); err != nil {
		h.Fatal(err)
	}
	if h.past, err = h.old.Open(); err != nil {
		h.Fatal(err)
	}
	if h.engine, err = engine.Open(h.Context(), engine.Config{Journal: h.disk, Archive: h.past, Cell: cell.DefaultConfig(), EndedLinger: time.Hour}); err != nil {
		h.Fatal(err)
	}
	h.runner = New(Config{Engine: h.engine, Log: slog.New(slog.DiscardHandler), PassEvery: 5 * time.Millisecond})
	h.runner.Lead()
}

func (h *house) close() {
	h.runner.Rest()
	h.engine.Close()
	h.past.Close()
	h.disk.Close()
}

func (h *house) do(cmd kernel.Command) {
	h.Helper()
	if err := h.engine.Do(h.Context(), cmd); err != nil {
		h.Fatalf("%T: %v", cmd, err)
	}
}

func (h *house) rules(name, body string) {
	h.Helper()
	rules, problems := ruleset.Parse(body)
	if len(problems) > 0 {
		h.Fatal(problems)
	}
	h.do(&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: name, Body: body}, Compiled: rules})
}

func (h *house) search(id string, skill float64) {
	h.Helper()
	h.do(&matchmaking.StartMatchmaking{Configuration: "ranked", ID: id, Players: []matchmaking.Player{{
		ID: "player " + id, Attributes: []ruleset.NamedValue{{Name: "skill", Value: ruleset.Value{Kind: ruleset.Number, Number: skill}}},
	}}})
}

func (h *house) status(id string) matchmaking.Status {
	h.Helper()
	t, err := h.engine.Ticket(h.Context(), id)
	if err != nil {
		h.Fatal(err)
	}
	return t.Status
}

func (h *house) active() (n int) {
	h.Helper()
	if err := h.engine.Read(h.Context(), func(v *cell.View) error { n = v.TicketCounts("ranked").Active; return nil }); err != nil {
		h.Fatal(err)
	}
	return n
}

func TestRunnerMatchesEverybody(t *testing.T) {
	h := newHouse(t)
	var all sync.WaitGroup
	for lane := range 8 {
		all.Go(func() {
			for i := range 100 {
				h.search(fmt.Sprintf("t-%d-%d", lane, i), float64(i%10))
			}
		})
	}
	all.Wait()
	waittest.Until(h, "all are matched", func() bool { return h.active() == 0 })
	waittest.Until(h, "the status says so", func() bool { // which the runner gets like every follower
		s := h.runner.Status()
		return len(s) == 1 && s[0].Tickets == 0 && s[0].Matched >= 800
	})
}

func TestRunnerGoesOnAfterARestart(t *testing.T) {
	h := newHouse(t)
	h.search("low", 0)
	waittest.Until(h, "it searches", func() bool { return h.status("low") == matchmaking.Searching })
	h.close()
	h.open()
	h.search("high", 100)
	waittest.Until(h, "it searches", func() bool { return h.status("high") == matchmaking.Searching })
	if h.status("low") != matchmaking.Searching {
		t.Errorf("low is %s", h.status("low"))
	}
	h.search("mid", 40)
	waittest.Until(h, "those who suit are matched", func() bool {
		return h.status("mid") == matchmaking.Completed && h.status("low") == matchmaking.Completed
	})
	x, err := h.engine.Ticket(t.Context(), "high")
	if err != nil {
		t.Fatal(err)
	}
	why, rules, ok := h.runner.Explain("ranked", x.No, domain.TimeOf(h.engine.Now()))
	if !ok || rules == nil || why.Key != x.No {
		t.Errorf("explanation %+v, %t", why, ok)
	}
}

// TestNextOffice: the leader changes while tickets arrive. Each ticket is matched, and a node that does not lead logs nothing.
func TestNextOffice(t *testing.T) {
	h := newHouse(t)
	other := New(h.runner.config)
	runners := []*Runner{h.runner, other}
	var all sync.WaitGroup
	for lane := range 4 {
		all.Go(func() {
			for i := range 50 {
				h.search(fmt.Sprintf("t-%d-%d", lane, i), float64(i%10))
			}
		})
	}
	for turn := range 6 {
		leads, rests := runners[turn%2], runners[(turn+1)%2]
		waittest.Until(h, "it works", func() bool { return len(leads.Status()) == 1 })
		if s := rests.Status(); len(s) != 0 {
			t.Errorf("a runner that rests has %v", s)
		}
		leads.Rest()
		if len(leads.all()) != 0 || leads.Due() != 0 {
			t.Error("a runner that rests has work")
		}
		if did, err := leads.Settle(t.Context()); did || err != nil {
			t.Errorf("a runner that rests settled: %t, %v", did, err)
		}
		rests.Lead()
	}
	all.Wait()
	waittest.Until(h, "all are matched", func() bool { return h.active() == 0 })
}

func TestRunnerTakesAnotherRuleSet(t *testing.T) {
	h := newHouse(t)
	h.search("low", 0)
	h.search("high", 100)
	h.do(&matchmaking.StartMatchmaking{Configuration: "ranked", ID: "none", Players: []matchmaking.Player{{ID: "without skill"}}})
	waittest.Until(h, "they search", func() bool {
		return h.status("low") == matchmaking.Searching && h.status("high") == matchmaking.Searching
	})
	h.rules("wide", strings.Replace(duel, `"maxDistance":50`, `"maxDistance":500`, 1))
	h.do(&matchmaking.UpdateConfiguration{Name: "ranked", RuleSet: new("wide")})
	waittest.Until(h, "they are matched by the new one", func() bool {
		return h.status("low") == matchmaking.Completed && h.status("high") == matchmaking.Completed
	})

	h.search("last", 7)
	h.rules("words", strings.NewReplacer(`"type":"number"`, `"type":"string"`, `,
"rules"`, `,"x"`).Replace(duel))
	h.do(&matchmaking.UpdateConfiguration{Name: "ranked", RuleSet: new("words")})
	waittest.Until(h, "one that does not fit fails", func() bool { return h.status("last") == matchmaking.Failed })
	if h.status("none") != matchmaking.Searching {
		t.Errorf("none is %s", h.status("none"))
	}
	h.do(&matchmaking.StopMatchmaking{ID: "none"})
	h.do(&matchmaking.DeleteConfiguration{Name: "ranked"})
	waittest.Until(h, "its lane is gone", func() bool { return len(h.runner.Status()) == 0 })
}
