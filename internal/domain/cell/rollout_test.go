package cell

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/exit"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

const oldFleet, newFleet, liveAlias = "fleet-old", "fleet-new", "alias-live"

// stage is a world with an alias that points to one of two fleets, each with hosts for game sessions.
type stage struct {
	*world
	servers int
}

// newStage makes the fleets, the alias "live", and a queue over it.
func newStage(t *testing.T) *stage {
	w := newWorld(t, DefaultConfig())
	w.must(&kernel.RaiseLevel{To: kernel.Level})
	w.must(&hosting.CreateLocation{Name: testLocation, Region: "us-east-1"})
	s := &stage{world: w}
	for _, id := range []string{oldFleet, newFleet} {
		w.must(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: id, Region: "us-east-1"}, Locations: []string{testLocation}})
		w.must(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: id, Name: testCompute, Location: testLocation, IPAddress: "127.0.0.1"}})
	}
	w.must(&hosting.CreateAlias{Alias: fleet.Alias{ID: liveAlias, Name: "live", Region: "us-east-1", Fleet: oldFleet}})
	w.must(&hosting.CreateQueue{Queue: placement.Queue{Name: "q", Region: "us-east-1", Timeout: 10 * time.Minute, Destinations: []string{"arn:aws:gamelift:us-east-1::alias/" + liveAlias}}})
	return s
}

// serve gives each fleet a number of ready server processes.
func (s *stage) serve(n int, fleets ...string) {
	s.t.Helper()
	for _, id := range fleets {
		for range n {
			s.ready(id)
		}
	}
}

func (s *stage) ready(fleetID string) fleet.Key {
	s.t.Helper()
	s.servers++
	key := fleet.Key{Fleet: fleetID, Compute: testCompute, Process: fmt.Sprint("s", s.servers)}
	s.must(&hosting.ConnectProcess{Process: key, Link: 7})
	s.must(&hosting.ActivateProcess{Process: key, Link: 7, Port: 7777, Request: kernel.RequestHash(key.Process)})
	s.must(&hosting.ReportHealth{Process: key, Healthy: true})
	return key
}

// begin begins a rollout with a minute for each step.
func (s *stage) begin(weights ...int32) {
	s.t.Helper()
	s.must(start(weights...))
}

func start(weights ...int32) *hosting.StartRollout {
	return &hosting.StartRollout{Alias: "live", To: newFleet, Weights: weights, StepTime: time.Minute, Failures: 3, FailurePercent: 20, By: "ann"}
}

// pass moves the clock by a minute with healthy servers.
func (s *stage) pass(d time.Duration) {
	s.t.Helper()
	s.advance(d)
}

func (s *stage) rollout() fleet.Rollout {
	s.t.Helper()
	v := s.cell.View()
	all := v.Rollouts()
	if len(all) != 1 {
		s.t.Fatalf("rollouts %+v, want one", all)
	}
	return all[0]
}

// check compares the phase, the step and the fleet to which the alias points.
func (s *stage) check(want string) {
	s.t.Helper()
	s.must(&kernel.Tick{})
	r := s.rollout()
	if got := fmt.Sprintf("%s %d %s", r.Phase, r.Weight(), s.points()); got != want {
		s.t.Fatalf("the rollout is %q (%s), want %q", got, r.Why, want)
	}
}

func (s *stage) points() string {
	v := s.cell.View()
	a, _ := v.Alias(liveAlias)
	return a.Fleet
}

// create requests a game session on the alias as a door does: with the fleet to which the alias points.
func (s *stage) create(name string) (session.GameSession, error) {
	cmd := &hosting.CreateGameSession{Fleet: s.points(), Alias: liveAlias, Location: testLocation, Name: name, PlayersMax: 4}
	err := s.do(cmd)
	return cmd.Game, err
}

func (s *stage) mustCreate(name string) session.GameSession {
	s.t.Helper()
	g, err := s.create(name)
	if err != nil {
		s.t.Fatalf("%s: %v", name, err)
	}
	return g
}

// place starts a placement, and returns the fleet of its game session, or "" if it waits.
func (s *stage) place(id string) string {
	s.t.Helper()
	s.start(placement.Placement{ID: id})
	return s.placedIn(id)
}

func (s *stage) placedIn(id string) string {
	p := s.placement(id)
	return session.ID(p.Game).Fleet()
}

func (s *stage) lost(key fleet.Key) {
	s.t.Helper()
	s.must(&hosting.ReportExit{Process: key, Event: "SERVER_PROCESS_CRASHED", Exit: exit.Report{Reason: "SERVER_PROCESS_CRASHED", Signal: "SIGSEGV"}})
}

func (s *stage) log(fleetID string) (all []string) {
	v := s.cell.View()
	for _, e := range v.FleetEvents(fleetID, 0, 0, 0, 100) {
		all = append(all, e.Message)
	}
	return all
}

func refusedWith(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want a refusal with %q", err, text)
	}
}

// The share is exact at every moment: of n requests the new fleet gets n*weight/100, rounded up, whether they are calls or placements, and across restarts.
func TestRolloutShareIsExact(t *testing.T) {
	for _, weight := range []int32{1, 10, 33, 50, 99} {
		s := newStage(t)
		s.serve(120, oldFleet, newFleet)
		s.begin(weight, 100)
		toNew := 0
		for n := 1; n <= 100; n++ {
			name, in := fmt.Sprint("g", n), ""
			if n%3 == 0 {
				in = s.place(name)
			} else {
				in = s.mustCreate(name).FleetID
			}
			if in == newFleet {
				toNew++
			}
			if want := (n*int(weight) + 99) / 100; toNew != want {
				t.Fatalf("weight %d: after %d requests the new fleet has %d, want %d", weight, n, toNew, want)
			}
			if n%17 == 0 {
				s.restart()
			}
		}
		if r := s.rollout(); r.Turns != 100 || r.TurnsNew != int64(toNew) || r.Sessions != int64(toNew) {
			t.Errorf("it counts %+v", r)
		}
	}
}

// Each step lasts a set time. Until the last one the alias points to the old fleet. No game session is ended.
func TestRolloutSteps(t *testing.T) {
	s := newStage(t)
	s.serve(3, oldFleet, newFleet)
	playing := s.mustCreate("before")
	s.begin(10, 50, 100)
	s.check("MOVING 10 " + oldFleet)
	s.pass(59 * time.Second)
	s.check("MOVING 10 " + oldFleet)
	s.pass(time.Second)
	s.check("MOVING 50 " + oldFleet)
	s.restart()
	s.pass(time.Minute)
	s.check("MOVING 100 " + newFleet)
	for i := range 2 {
		if g := s.mustCreate(fmt.Sprint("after", i)); g.FleetID != newFleet {
			t.Errorf("in the last step a game session is in %s", g.FleetID)
		}
	}
	s.restart()
	s.pass(time.Minute)
	s.check("DONE 100 " + newFleet)
	v := s.cell.View()
	if g, _ := v.GameSession(playing.ID); !g.Live() {
		t.Errorf("the game session of the old fleet is %s", g.Status)
	}
	for _, id := range []string{oldFleet, newFleet} {
		if log := s.log(id); !strings.Contains(log[0], "is done: every step is over") || !slices.ContainsFunc(log, func(m string) bool {
			return strings.Contains(m, "(live) from fleet fleet-old to fleet fleet-new has begun: 10 % of new game sessions go to fleet fleet-new, and after 1m0s 50 %, 100 %")
		}) {
			t.Errorf("the events of %s are %q", id, log)
		}
	}
	if err := s.do(&hosting.UndoRollout{Alias: "live", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	s.check("UNDONE 100 " + oldFleet)
	refusedWith(t, s.do(&hosting.UndoRollout{Alias: "live", By: "ann"}), "was undone at")
}

// Downtime of the service does not count for a step, because the new fleet was not observed meanwhile.
func TestRolloutStepWaitsForTheService(t *testing.T) {
	s := newStage(t)
	s.serve(1, oldFleet, newFleet)
	s.begin(50, 100)
	s.pass(30 * time.Second)
	s.now = s.now.Add(time.Hour)
	s.must(&kernel.Resume{})
	s.pass(29 * time.Second)
	s.check("MOVING 50 " + oldFleet)
	s.pass(2 * time.Second)
	s.check("MOVING 100 " + newFleet)
}

// A placement's fleet is decided once: whichever fleet has a free process first, a placement for the old fleet never goes to the new one. A placement for the new
// fleet may use either.
func TestRolloutPlacementsKeepTheirTurns(t *testing.T) {
	s := newStage(t)
	s.serve(1, newFleet)
	s.begin(50, 100)
	if in := s.place("p1"); in != newFleet {
		t.Errorf("the first placement is in %q", in)
	}
	for _, id := range []string{"p2", "p3", "p4"} {
		if in := s.place(id); in != "" {
			t.Errorf("%s is in %s", id, in)
		}
	}
	s.restart()
	s.must(&kernel.Resume{})
	s.pass(time.Second)
	s.ready(newFleet)
	s.ready(newFleet)
	if in := s.placedIn("p2") + s.placedIn("p3") + s.placedIn("p4"); in != newFleet {
		t.Errorf("two free processes of the new fleet, and the placements are in %q", in)
	}
	if s.placedIn("p3") != newFleet {
		t.Error("p3 has the new fleet's turn")
	}
	if in := s.place("p5"); in != newFleet { // the free process that p2 and p4 leave alone
		t.Errorf("p5 is in %q", in)
	}
	s.ready(oldFleet)
	if s.placedIn("p2") != oldFleet || s.placedIn("p4") != "" {
		t.Errorf("p2 is in %q, p4 in %q", s.placedIn("p2"), s.placedIn("p4"))
	}
	s.serve(3, oldFleet)
	if in := s.place("p6") + " " + s.place("p7"); in != oldFleet+" "+oldFleet {
		t.Errorf("without a free process in the new fleet they are in %s", in)
	}
}

// In the last step, and after the end of a rollout, waiting placements go to the fleet to which the alias points.
func TestRolloutMovesWaitingPlacements(t *testing.T) {
	s := newStage(t)
	key := s.ready(newFleet)
	s.begin(1, 100)
	if in := s.place("p1"); in != newFleet {
		t.Fatalf("p1 is in %q", in)
	}
	s.must(&hosting.ActivateGameSession{Process: key, Game: session.ID(s.placement("p1").Game)})
	s.place("p2")
	s.pass(time.Minute)
	s.check("MOVING 100 " + newFleet)
	s.ready(newFleet)
	if in := s.placedIn("p2"); in != newFleet {
		t.Errorf("in the last step p2 is in %q", in)
	}
	s.place("p3")
	s.must(&hosting.UndoRollout{Alias: liveAlias, By: "ann"})
	s.pass(time.Second)
	s.ready(newFleet)
	if in := s.placedIn("p3"); in != "" {
		t.Errorf("after the undo p3 is in %q", in)
	}
	s.ready(oldFleet)
	if in := s.placedIn("p3"); in != oldFleet {
		t.Errorf("after the undo p3 is in %q", in)
	}
}

// A repeated request with an idempotency token gets the game session of the first one, in whichever fleet, and never a second.
func TestRolloutRecognisesRepeats(t *testing.T) {
	s := newStage(t)
	s.serve(10, oldFleet, newFleet)
	s.begin(50, 100)
	ask := func(token, in string) session.GameSession {
		cmd := &hosting.CreateGameSession{Fleet: in, Alias: liveAlias, Location: testLocation, PlayersMax: 4}
		cmd.Choose(token)
		cmd.ArchivedAt = s.cell.Forgotten()
		s.must(cmd)
		return cmd.Game
	}
	first, second := ask("one", newFleet), ask("two", oldFleet)
	if first.FleetID != newFleet || second.FleetID != oldFleet {
		t.Fatalf("they are in %s and %s", first.FleetID, second.FleetID)
	}
	for _, in := range []string{oldFleet, newFleet} {
		if g := ask("one", in); g.ID != first.ID {
			t.Errorf("a repeat made %s", g.ID)
		}
	}
	if r := s.rollout(); r.Turns != 2 || r.TurnsNew != 1 {
		t.Errorf("%d turns, %d new", r.Turns, r.TurnsNew)
	}
	s.pass(2 * time.Minute)
	s.check("DONE 100 " + newFleet)
	if g := ask("two", newFleet); g.ID != second.ID {
		t.Errorf("after the rollout a repeat made %s", g.ID)
	}
}

// The alias moves back if the new build's processes crash, end before they connect, or activate no game session.
func TestRolloutComesBack(t *testing.T) {
	ends := map[string]func(*stage, int){
		"server processes": func(s *stage, _ int) { s.lost(s.ready(newFleet)) },
		"server process": func(s *stage, n int) {
			s.lost(fleet.Key{Fleet: newFleet, Compute: testCompute, Process: fmt.Sprint("early", n)})
		},
		"game sessions": func(s *stage, n int) {
			for g := s.mustCreate(fmt.Sprint("g", n)); g.FleetID != newFleet; g = s.mustCreate(fmt.Sprint("h", n)) {
			}
			s.advance(s.cell.config.Hosting.Activation + time.Second)
		},
	}
	for what, fail := range ends {
		s := newStage(t)
		s.serve(6, oldFleet)
		s.serve(4, newFleet)
		long := start(50, 100)
		long.StepTime = time.Hour
		s.must(long)
		for n := range 2 {
			fail(s, n)
			s.check("MOVING 50 " + oldFleet)
			s.restart()
		}
		fail(s, 2)
		s.check("UNDONE 50 " + oldFleet)
		r := s.rollout()
		if !strings.Contains(r.Why, what) || !strings.Contains(r.Why, "the bound is 3 and 20 %") {
			t.Errorf("%s: the reason is %q", what, r.Why)
		}
		for _, id := range []string{oldFleet, newFleet} {
			if log := s.log(id); !slices.ContainsFunc(log, func(m string) bool {
				return strings.Contains(m, "is over, and new game sessions go to fleet fleet-old again: "+r.Why)
			}) {
				t.Errorf("%s: the events of %s are %q", what, id, log)
			}
		}
		if g := s.mustCreate("after"); g.FleetID != oldFleet {
			t.Errorf("%s: a new game session is in %s", what, g.FleetID)
		}
	}
}

// In the last step the alias already points to the new fleet, and moves back as well. Earlier processes, and ends that the service requested, do not count.
func TestRolloutComesBackFromTheLastStep(t *testing.T) {
	s := newStage(t)
	s.serve(1, oldFleet)
	for range 5 {
		s.lost(s.ready(newFleet))
	}
	s.serve(9, newFleet)
	s.begin(100)
	s.check("MOVING 100 " + newFleet)
	early := fleet.Key{Fleet: newFleet, Compute: testCompute, Process: "early"}
	for range 4 {
		s.lost(early) // one report and its repeats
	}
	s.lost(s.ready(newFleet))
	s.check("MOVING 100 " + newFleet)
	if r := s.rollout(); r.Processes != 11 || r.ProcessesFailed != 2 {
		t.Errorf("%d of %d failed", r.ProcessesFailed, r.Processes)
	}
	s.lost(s.ready(newFleet))
	s.check("UNDONE 100 " + oldFleet) // 3 of 12 are more than 20 %
}

// The alias does not move back for a few failures among many, nor for sessions that their placement, an operator or a lost host ended.
func TestRolloutBearsFailures(t *testing.T) {
	s := newStage(t)
	s.serve(1, oldFleet)
	s.serve(20, newFleet)
	s.begin(100)
	for range 4 {
		s.lost(s.ready(newFleet))
	}
	s.check("MOVING 100 " + newFleet) // 4 of 24
	for n := range 4 {
		id := fmt.Sprint("p", n)
		s.place(id)
		s.must(&hosting.UpdateQueue{Name: "q"})
		s.must(&hosting.TerminateGameSession{ID: session.ID(s.placement(id).Game)})
	}
	if r := s.rollout(); r.SessionsFailed != 0 || r.Sessions != 4 {
		t.Errorf("%d of %d game sessions failed", r.SessionsFailed, r.Sessions)
	}
}

// While a rollout is running, its alias and fleets cannot be deleted or changed: the refusal says how to end it. Invalid requests are refused, too.
func TestRolloutRefusals(t *testing.T) {
	s := newStage(t)
	refusedWith(t, s.do(start(100)), "no server process of fleet fleet-new is ready")
	s.serve(1, oldFleet, newFleet)
	change := func(f func(*hosting.StartRollout)) error {
		cmd := start(10, 100)
		f(cmd)
		return s.do(cmd)
	}
	for text, f := range map[string]func(*hosting.StartRollout){
		"steps: 0 of them":                  func(c *hosting.StartRollout) { c.Weights = nil },
		"steps[1]: 10; want more than 10":   func(c *hosting.StartRollout) { c.Weights = []int32{10, 10, 100} },
		"steps[0]: 0; want more than 0":     func(c *hosting.StartRollout) { c.Weights = []int32{0, 100} },
		"steps[1]: 101":                     func(c *hosting.StartRollout) { c.Weights = []int32{10, 101} },
		"the last one is 10; want 100":      func(c *hosting.StartRollout) { c.Weights = []int32{10} },
		"step time 0s":                      func(c *hosting.StartRollout) { c.StepTime = 0 },
		"step time 169h0m0s":                func(c *hosting.StartRollout) { c.StepTime = 169 * time.Hour },
		"failures 0":                        func(c *hosting.StartRollout) { c.Failures = 0 },
		"failure percent 101":               func(c *hosting.StartRollout) { c.FailurePercent = 101 },
		"points to fleet fleet-old already": func(c *hosting.StartRollout) { c.To = oldFleet },
		"fleet fleet-x not found":           func(c *hosting.StartRollout) { c.To = "fleet-x" },
		`no alias "dead"`:                   func(c *hosting.StartRollout) { c.Alias = "dead" },
	} {
		refusedWith(t, change(f), text)
	}
	refusedWith(t, s.do(&hosting.UndoRollout{Alias: "live"}), "had no rollout")
	s.begin(10, 100)
	undo := "muster rollout --alias alias-live --undo"
	refusedWith(t, s.do(start(100)), undo)
	refusedWith(t, s.do(&hosting.UpdateAlias{ID: liveAlias, Route: &hosting.Route{Fleet: newFleet}}), undo)
	refusedWith(t, s.do(&hosting.DeleteAlias{ID: liveAlias}), undo)
	refusedWith(t, s.do(&hosting.DeleteFleet{ID: oldFleet}), undo)
	refusedWith(t, s.do(&hosting.DeleteFleet{ID: newFleet}), undo)
	name := "arena"
	s.must(&hosting.UpdateAlias{ID: liveAlias, Name: &name})
	s.must(&hosting.UndoRollout{Alias: "arena", By: "ann"})
	s.check("UNDONE 10 " + oldFleet)
	s.must(&hosting.DeleteFleet{ID: newFleet})
	s.must(&hosting.DeleteAlias{ID: liveAlias})
	v := s.cell.View()
	if all := v.Rollouts(); len(all) != 0 {
		t.Errorf("the alias is gone, and its rollout is %+v", all)
	}
}

// Every event of hosting examines each running rollout, so their number is limited.
func TestLimitOfRollouts(t *testing.T) {
	s := newStage(t)
	s.serve(1, newFleet)
	cmd := func(n int) *hosting.StartRollout {
		id := fmt.Sprint("alias-", n)
		s.must(&hosting.CreateAlias{Alias: fleet.Alias{ID: id, Region: "us-east-1", Fleet: oldFleet}})
		x := start(10, 100)
		x.Alias = id
		return x
	}
	for n := range hosting.RolloutsMax {
		s.must(cmd(n))
	}
	refusedWith(t, s.do(cmd(hosting.RolloutsMax)), "100 rollouts are in progress; the limit is 100")
	s.must(&hosting.UndoRollout{Alias: "alias-7"})
	s.must(cmd(hosting.RolloutsMax + 1))
}

// A rollout is refused until all nodes of the cluster support it.
func TestRolloutBelowLevel(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.hall()
	w.server("s")
	w.must(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: oldFleet, Region: "us-east-1"}, Locations: []string{testLocation}})
	w.must(&hosting.CreateAlias{Alias: fleet.Alias{ID: liveAlias, Name: "live", Fleet: oldFleet}})
	cmd := start(100)
	cmd.To = testFleet
	refusedWith(t, w.do(cmd), "as soon as all nodes of the cluster run this release")
}

// The old fleet of a build drains when the rollout is done: its free hosts leave at once, and a host with a game session when that has ended. An undo restores the
// fleet's hosts, and the alias follows when a server process is ready.
func TestRolloutDrainsTheOldFleet(t *testing.T) {
	w, p := managedHall(t, 2, host("1"), host("2"))
	s := &stage{world: w}
	w.checkPlan("1 2")
	w.process("1", "a")
	w.process("2", "b")
	w.checkPlan("1 2")
	w.must(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: newFleet, Region: "us-east-1"}, Locations: []string{testLocation}})
	w.must(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: newFleet, Name: testCompute, Location: testLocation, IPAddress: "127.0.0.1"}})
	w.must(&hosting.CreateAlias{Alias: fleet.Alias{ID: liveAlias, Name: "live", Region: "us-east-1", Fleet: testFleet}})
	s.ready(newFleet)
	playing := s.mustCreate("playing")
	s.begin(100)
	s.pass(time.Minute)
	s.check("DONE 100 " + newFleet)
	v := w.cell.View()
	f, _ := v.Fleet(testFleet)
	if l := f.Locations[slices.IndexFunc(f.Locations, func(l fleet.FleetLocation) bool { return l.Name == testLocation })]; l.Capacity.Desired != 0 || !l.ScalingStopped {
		t.Errorf("the location of the old fleet is %+v", l)
	}
	busy, idle := "1", "2"
	if playing.ComputeName == "rack-2" {
		busy, idle = idle, busy
	}
	if got := w.plan(); !strings.Contains(got, "("+busy+")") {
		t.Errorf("the old fleet has the hosts %q", got)
	}
	for _, key := range []string{"a", "b"} {
		k := fleet.Key{Fleet: testFleet, Compute: map[string]string{"a": "rack-1", "b": "rack-2"}[key], Process: key}
		if k.Compute == "rack-"+idle {
			w.must(&hosting.EndProcess{Process: k, Request: 1})
		}
	}
	w.checkPlan("(" + busy + ")")
	s.pass(time.Minute)
	v = w.cell.View()
	if g, _ := v.GameSession(playing.ID); !g.Live() {
		t.Errorf("the drain ended a game session: %s", g.Cause)
	}
	w.must(&hosting.EndProcess{Process: fleet.Key{Fleet: testFleet, Compute: "rack-" + busy, Process: playing.ProcessID}, Request: 2})
	w.checkPlan("")

	s.restart()
	s.cell.capacity.Connect(p)
	w.must(&hosting.UndoRollout{Alias: "live", By: "ann"})
	s.check("RETURNING 100 " + newFleet)
	refusedWith(t, s.do(&hosting.DeleteFleet{ID: testFleet}), "returns to fleet")
	refusedWith(t, w.do(&hosting.UndoRollout{Alias: "live", By: "ann"}), "it waits for a server process of fleet fleet-1")
	w.checkPlan("1 2")
	w.process("1", "c")
	w.plan()
	s.check("UNDONE 100 " + testFleet)
	v = w.cell.View()
	f, _ = v.Fleet(testFleet)
	for _, l := range f.Locations {
		if l.Name == testLocation && (l.Capacity.Desired != 2 || l.ScalingStopped) {
			t.Errorf("after the undo the location is %+v", l)
		}
	}
	if g := s.mustCreate("back"); g.FleetID != testFleet {
		t.Errorf("after the undo a game session is in %s", g.FleetID)
	}
	w.must(&capacity.Plan{})
}

// A fleet that is used elsewhere keeps its hosts, and so does a fleet for which the rollout says so.
func TestRolloutKeepsHostsInUse(t *testing.T) {
	for why, use := range map[string]func(*stage, *hosting.StartRollout){
		"as was asked for": func(_ *stage, cmd *hosting.StartRollout) { cmd.Keep = true },
		"alias alias-test uses": func(s *stage, _ *hosting.StartRollout) {
			s.must(&hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-test", Fleet: testFleet}})
		},
		"queue q uses": func(s *stage, _ *hosting.StartRollout) {
			s.must(&hosting.CreateQueue{Queue: placement.Queue{Name: "q", Region: "us-east-1", Timeout: time.Minute, Destinations: []string{"arn:aws:gamelift:us-east-1::fleet/" + testFleet}}})
		},
	} {
		w, _ := managedHall(t, 1, host("1"))
		s := &stage{world: w}
		w.checkPlan("1")
		w.process("1", "a")
		w.must(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: newFleet, Region: "us-east-1"}, Locations: []string{testLocation}})
		w.must(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: newFleet, Name: testCompute, Location: testLocation, IPAddress: "127.0.0.1"}})
		w.must(&hosting.CreateAlias{Alias: fleet.Alias{ID: liveAlias, Name: "live", Region: "us-east-1", Fleet: testFleet}})
		s.ready(newFleet)
		cmd := start(100)
		use(s, cmd)
		s.must(cmd)
		s.pass(time.Minute)
		s.check("DONE 100 " + newFleet)
		if r := s.rollout(); !strings.Contains(r.Why, why) || len(r.Drained) != 0 {
			t.Errorf("%+v", r)
		}
		w.checkPlan("1")
	}
}

// The end of an attempt both makes its placement try again and ends the rollout, which makes all placements choose again.
func TestPlacementTriesOnceWhenItsFailureEndsARollout(t *testing.T) {
	s := newStage(t)
	s.must(&hosting.UpdateRuntime{Fleet: newFleet, Runtime: fleet.Runtime{ActivationTimeout: 30 * time.Second}})
	s.serve(1, newFleet)
	s.serve(2, oldFleet)
	cmd := start(10, 100)
	cmd.Failures = 1
	s.must(cmd)
	if got := s.place("p1"); got != newFleet {
		t.Fatalf("the first attempt is in %q, want %s", got, newFleet)
	}
	s.pass(31 * time.Second)
	s.check("UNDONE 10 " + oldFleet)
	v := s.cell.View()
	var live []session.GameSession
	for _, id := range []string{oldFleet, newFleet} {
		page, _, _ := v.GameSessions(id, hosting.GameFilter{}, 0, "", 10)
		live = append(live, slices.DeleteFunc(page, func(g session.GameSession) bool { return !g.Live() })...)
	}
	if len(live) != 1 || s.placedIn("p1") != oldFleet || v.Utilization(oldFleet, "").IdleProcesses != 1 {
		t.Errorf("game sessions %+v, placement %+v, free %d; want one game session in %s, which leaves one server process free",
			live, s.placement("p1"), v.Utilization(oldFleet, "").IdleProcesses, oldFleet)
	}
	if err := checkState(s.cell); err != nil {
		t.Error(err)
	}
	if err := s.checkRestarts(); err != nil {
		t.Error(err)
	}
}

// A step that ends in the same Tick as the failure of the new fleet ends the rollout instead of starting the next step, which counts from zero.
func TestRolloutComesBackAtTheEndOfAStep(t *testing.T) {
	for _, last := range []bool{false, true} {
		s := newStage(t)
		s.must(&hosting.UpdateRuntime{Fleet: newFleet, Runtime: fleet.Runtime{ActivationTimeout: time.Minute}})
		s.serve(1, newFleet)
		s.serve(2, oldFleet)
		cmd := start(10, 50, 100)
		if last {
			cmd = start(100)
		}
		cmd.Failures = 1
		s.must(cmd)
		s.mustCreate("g1")
		s.pass(time.Minute)
		if r := s.rollout(); r.Phase != fleet.RolloutUndone || s.points() != oldFleet || !strings.HasPrefix(r.Why, "1 of 1 game sessions of fleet fleet-new were never active") {
			t.Errorf("last step %t: the rollout is %s (%s), the alias points to %s; want it undone because of the game session", last, r.Phase, r.Why, s.points())
		}
		if err := s.checkRestarts(); err != nil {
			t.Error(err)
		}
	}
}
