package cell

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/exit"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

func crash(id string) *hosting.ReportExit {
	return &hosting.ReportExit{
		Process: processKey(id), Event: "SERVER_PROCESS_CRASHED",
		Exit: exit.Report{Reason: "SERVER_PROCESS_CRASHED", Signal: "SIGSEGV", PeakMemory: 300 << 20, CoreFile: "/core/1", Output: "ready\npanic: nil map\n"},
	}
}

// An agent's report ends the process, its game session and the seats of its players in one transaction, without the grace of a lost
// connection, and the process, the session and the event log say how it ended. A repeat changes nothing.
func TestExitEndsAtOnce(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.must(&kernel.RaiseLevel{To: 2})
	w.hall()
	game := w.game("g", 4)
	w.must(&hosting.ReservePlayers{Game: game, Players: []hosting.NewPlayer{{ID: playerID(1), Player: "ann"}}})
	w.must(crash("p-g"))
	kinds := []string{}
	for _, e := range w.events {
		kinds = append(kinds, typeName(e))
	}
	want := []string{"ProcessDied", "PlayerEnded", "GameSessionEnded", "ProcessEnded", "FleetEventWritten"}
	slices.Sort(kinds[1:3])
	slices.Sort(want[1:3])
	if !slices.Equal(kinds, want) {
		t.Errorf("events: %v; want %v", kinds, want)
	}
	for range 2 { // as it is, and out of a snapshot
		v := w.cell.View()
		p, _ := v.Process(processKey("p-g"))
		g, ok := v.GameSession(game)
		if !ok || p.State != fleet.Ended || p.EndReason != fleet.EndedCrashed || g.Status != session.Terminated || g.Cause != session.EndedByCrash || g.SeatsHeld != 0 {
			t.Errorf("%+v\n%+v", p, g)
		}
		for _, report := range []*exit.Report{p.Exit, g.Exit} {
			if report == nil || report.How() != "signal SIGSEGV, at most 300 MiB of memory, core file /core/1" || report.At != w.now {
				t.Errorf("%+v", report)
			}
		}
		w.restart()
	}
	if log := fleetLog(w); !strings.Contains(log[len(log)-1], "process p-g on compute host in custom-home ended: signal SIGSEGV, at most 300 MiB of memory, core file /core/1. Last output: ready\npanic: nil map") {
		t.Errorf("%q", log)
	}
	w.must(crash("p-g"))
	if len(w.events) != 0 {
		t.Errorf("a repeat has events: %v", w.events)
	}
}

// fleetLog returns the messages of the test fleet's event log about processes.
func fleetLog(w *world) (messages []string) {
	f := w.cell.hosting.Fleets
	for _, r := range f.EventsOf(testFleet) {
		if e := f.Events.Get(r); strings.HasPrefix(e.Code, "SERVER_PROCESS") {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

// While the cluster has nodes of the previous release, a report ends the process, and fields that they could not read are omitted.
func TestExitBelowLevel(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.hall()
	key := w.server("p")
	w.must(crash("p"))
	v := w.cell.View()
	if p, _ := v.Process(key); p.State != fleet.Ended || p.Exit != nil || len(fleetLog(w)) != 1 {
		t.Errorf("%+v", p)
	}
}

// A process that announced its own end did not crash, whatever its exit code. The report is kept.
func TestExitAfterGoodEnd(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.must(&kernel.RaiseLevel{To: 2})
	w.hall()
	key := w.server("p")
	w.must(&hosting.EndProcess{Process: key, Request: 1})
	w.must(crash("p"))
	v := w.cell.View()
	if p, _ := v.Process(key); p.EndReason != fleet.EndedNormally || p.Exit == nil {
		t.Errorf("%+v", p)
	}
	if log := fleetLog(w); len(log) != 0 {
		t.Errorf("%q", log)
	}
}

// An agent may report a process that never connected, such as one whose path does not exist.
func TestExitOfUnknownProcess(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.hall()
	cmd := &hosting.ReportExit{Process: processKey("new"), Event: "SERVER_PROCESS_INVALID_PATH", Exit: exit.Report{Reason: "SERVER_PROCESS_INVALID_PATH"}}
	for range 2 {
		w.must(cmd)
	}
	if log := fleetLog(w); len(log) != 1 || !strings.HasSuffix(log[0], "on compute host in custom-home cannot be started: its launch path names no program") {
		t.Errorf("%q", log)
	}
	cmd.Process.Compute = "other"
	if err := w.do(cmd); err == nil {
		t.Error("a report for a compute that does not exist succeeded")
	}
	cmd = &hosting.ReportExit{Process: processKey("new"), Exit: exit.Report{Reason: "BORED"}}
	if err := w.do(cmd); err == nil || !strings.Contains(err.Error(), `TerminationReason: "BORED"`) {
		t.Error(err)
	}
}

// A process that crashes in a loop gets a bounded number of events, the newest of which counts the others, and more of them later.
func TestExitEventsAreBounded(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.must(&kernel.RaiseLevel{To: kernel.Level})
	w.hall()
	loop := func(name string) {
		for i := range 100 {
			w.must(crash(fmt.Sprint(name, i)))
			w.now += 1000
		}
	}
	check := func(events int, times int64) {
		t.Helper()
		v, counted, got := w.cell.View(), int64(0), 0
		for _, e := range v.FleetEvents(testFleet, 0, 0, 0, 1000) {
			if strings.HasPrefix(e.Code, "SERVER_PROCESS") {
				got, counted = got+1, counted+e.Times()
			}
		}
		if got != events || counted != times {
			t.Errorf("%d events tell of %d; want %d and %d", got, counted, events, times)
		}
	}
	loop("a")
	check(10, 100)
	w.now = w.now.Add(10 * time.Minute)
	loop("b")
	check(20, 200)
}
