package cell

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

// pool is a pool of hosts that a test controls.
type pool struct{ hosts []capacity.Host }

func (p *pool) EachHost(yield func(capacity.Host) bool) {
	for _, h := range p.hosts {
		if !yield(h) {
			return
		}
	}
}

func host(id string) capacity.Host {
	return capacity.Host{ID: id, Name: "rack-" + id, Location: testLocation, IP: "10.0.0.1", Ports: 100}
}

// managedHall makes a build and its fleet, with a desired number of hosts in a location.
func managedHall(t *testing.T, desired int32, hosts ...capacity.Host) (*world, *pool) {
	t.Helper()
	p := &pool{hosts}
	config := DefaultConfig()
	config.Pool = p
	w := newWorld(t, config)
	w.must(&kernel.RaiseLevel{To: kernel.Level})
	w.must(&hosting.CreateLocation{Name: testLocation, Region: "us-east-1"})
	w.must(&hosting.CreateBuild{Build: fleet.Build{ID: "build-1", Region: "us-east-1", Storage: fleet.Storage{Bucket: "b", Key: "k"}}})
	w.must(&hosting.CreateFleet{Locations: []string{testLocation}, Fleet: fleet.Fleet{
		ID: testFleet, Region: "us-east-1", Managed: &fleet.Managed{Build: "build-1"}, Runtime: &fleet.Runtime{Launches: []fleet.Launch{{Path: "/local/game/server", Copies: 2}}},
	}})
	w.want(desired, 10)
	return w, p
}

func (w *world) want(desired, most int32) {
	w.t.Helper()
	w.must(&hosting.SetCapacity{Fleet: testFleet, Location: testLocation, Desired: &desired, Max: &most})
}

// plan plans, and returns the fleet's hosts. A host that is being released is in parentheses.
func (w *world) plan() string {
	w.t.Helper()
	w.must(&capacity.Plan{})
	v := w.cell.View()
	var all []string
	for _, a := range v.Assignments(testFleet, testLocation) {
		name := a.Host
		if a.Releasing {
			name = "(" + name + ")"
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

func (w *world) checkPlan(want string) {
	w.t.Helper()
	if got := w.plan(); got != want {
		w.t.Fatalf("the fleet has the hosts %q, want %q", got, want)
	}
}

// process makes a process on a host ready and healthy.
func (w *world) process(host, id string) fleet.Key {
	w.t.Helper()
	key := fleet.Key{Fleet: testFleet, Compute: "rack-" + host, Process: id}
	w.must(&hosting.ConnectProcess{Process: key, Link: 7})
	w.must(&hosting.ActivateProcess{Process: key, Link: 7, Port: 7777, Request: kernel.RequestHash(id)})
	w.must(&hosting.ReportHealth{Process: key, Healthy: true})
	return key
}

func (w *world) events3() (all []string) {
	v := w.cell.View()
	for _, e := range v.FleetEvents(testFleet, 0, 0, 0, 3) {
		all = append(all, e.Code)
	}
	return all
}

func (w *world) status() string {
	v := w.cell.View()
	f, _ := v.Fleet(testFleet)
	return f.Status.String()
}

// A fleet of a build becomes ACTIVE on the hosts that it gets, with an event for each step.
func TestManagedFleetBecomesActive(t *testing.T) {
	w, _ := managedHall(t, 1, host("1"))
	if w.status() != "NEW" {
		t.Errorf("a new fleet is %s", w.status())
	}
	w.checkPlan("1")
	v := w.cell.View()
	if x, ok := v.AssignmentOf("1"); !ok || x.Fleet != testFleet || x.Compute != "rack-1" || x.Releasing {
		t.Errorf("its host is assigned as %+v", x)
	}
	if x, ok := v.AssignmentOf("2"); ok {
		t.Errorf("an unknown host is assigned as %+v", x)
	}
	if got := w.events3(); w.status() != "DOWNLOADING" || got[0] != "FLEET_STATE_DOWNLOADING" {
		t.Errorf("with a host it is %s after %v", w.status(), got)
	}
	key := fleet.Key{Fleet: testFleet, Compute: "rack-1", Process: "p"}
	w.must(&hosting.ConnectProcess{Process: key, Link: 7})
	w.checkPlan("1")
	if got := w.events3(); w.status() != "ACTIVATING" || fmt.Sprint(got) != "[FLEET_STATE_ACTIVATING FLEET_STATE_BUILDING FLEET_STATE_VALIDATING]" {
		t.Errorf("with a process it is %s after %v", w.status(), got)
	}
	if err := w.do(&hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, PlayersMax: 2}); err == nil || !strings.Contains(err.Error(), "ACTIVATING") {
		t.Errorf("a game session in a fleet that is ACTIVATING: %v", err)
	}
	w.process("1", "p")
	w.checkPlan("1")
	if got := w.events3(); w.status() != "ACTIVE" || got[2] != "FLEET_STATE_ACTIVE" || got[0] != "LOCATION_STATE_ACTIVE" {
		t.Errorf("with a process that is ready it is %s after %v", w.status(), got)
	}
	w.must(&hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, PlayersMax: 2})
	w.want(0, 10)
	w.checkPlan("(1)")
	if w.status() != "ACTIVE" {
		t.Errorf("while its host leaves it is %s", w.status())
	}
}

// A new fleet wants a host in each of its locations, also in those that are added later.
func TestNewFleetWantsHosts(t *testing.T) {
	p := &pool{[]capacity.Host{host("1"), host("2")}}
	home := host("3")
	home.Location = "us-east-1"
	p.hosts = append(p.hosts, home)
	config := DefaultConfig()
	config.Pool = p
	w := newWorld(t, config)
	w.must(&kernel.RaiseLevel{To: kernel.Level})
	w.must(&hosting.CreateLocation{Name: testLocation, Region: "us-east-1"})
	w.must(&hosting.CreateBuild{Build: fleet.Build{ID: "build-1", Region: "us-east-1", Storage: fleet.Storage{Bucket: "b", Key: "k"}}})
	w.must(&hosting.CreateFleet{Fleet: fleet.Fleet{
		ID: testFleet, Region: "us-east-1", Managed: &fleet.Managed{Build: "build-1"}, Runtime: &fleet.Runtime{Launches: []fleet.Launch{{Path: "/local/game/server", Copies: 2}}},
	}})
	w.checkPlan("")
	v := w.cell.View()
	if all := v.Assignments(testFleet, "us-east-1"); len(all) != 1 || all[0].Host != "3" {
		t.Errorf("in its home location the fleet has %+v", all)
	}
	w.must(&hosting.AddFleetLocations{ID: testFleet, Locations: []string{testLocation}})
	w.checkPlan("1")
}

// A host that is released drains: idle processes are asked to end, the game session continues, and afterwards the host is free. The fleet may get it back earlier.
func TestReleaseEndsNoGameSession(t *testing.T) {
	for _, full := range []bool{false, true} {
		w, p := managedHall(t, 1, host("1"))
		w.checkPlan("1")
		w.must(&hosting.UpdateFleetAttributes{ID: testFleet, FullProtection: &full})
		playing, idle := w.process("1", "playing"), fleet.Key{}
		w.checkPlan("1")
		cmd := &hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, PlayersMax: 2}
		w.must(cmd)
		w.must(&hosting.ActivateGameSession{Process: playing, Game: cmd.ID()})
		idle = w.process("1", "idle")

		w.want(0, 10)
		w.checkPlan("(1)")
		v := w.cell.View()
		if x, _ := v.Process(idle); x.TerminateBy == 0 {
			t.Error("the idle process was not asked to end")
		}
		if x, _ := v.Process(playing); x.TerminateBy != 0 {
			t.Error("the process with a game session was asked to end")
		}
		if err := w.do(&hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, PlayersMax: 2}); err == nil {
			t.Error("a host on its way out got a game session")
		}
		w.must(&hosting.EndProcess{Process: idle, Request: 1})
		w.now = w.now.Add(24 * time.Hour)
		w.checkPlan("(1)")
		if g, _ := w.gameSession(cmd.ID()); g.Status != session.Active {
			t.Errorf("a day later the game session is %s", g.Status)
		}

		w.want(1, 10)
		w.checkPlan("1")
		if x, _ := w.compute("1"); x.Draining() {
			t.Error("the fleet has its host back, and it drains")
		}
		w.want(0, 10)
		w.checkPlan("(1)")
		w.must(&hosting.EndProcess{Process: playing, Request: 2})
		w.checkPlan("")
		if _, there := w.compute("1"); there {
			t.Error("the host is free, and still a compute of the fleet")
		}
		if p.hosts = nil; w.plan() != "" {
			t.Error("a host that is gone serves the fleet")
		}
	}
}

func (w *world) gameSession(id session.ID) (session.GameSession, bool) {
	v := w.cell.View()
	return v.GameSession(id)
}

func (w *world) compute(host string) (fleet.Compute, bool) {
	v := w.cell.View()
	return v.Compute(testFleet, "rack-"+host)
}

// A plan follows the pool, reports missing hosts, and changes nothing if the pool has not changed. The state survives a restart.
func TestPlanFollowsThePool(t *testing.T) {
	w, p := managedHall(t, 4, host("1"), host("2"), host("3"))
	w.checkPlan("1 2 3")
	p.hosts[1].Standing = capacity.Drained
	w.checkPlan("1 3")
	v := w.cell.View()
	if s, short := v.Shortage(testFleet, testLocation); !short || s.String() != "needs 4 hosts, has 2: rack-2 is drained" {
		t.Errorf("got %q", s.String())
	}
	if w.do(&capacity.Plan{}) != nil || len(w.events) > 0 {
		t.Errorf("a second plan emits %v", w.events)
	}
	w.restart()
	if w.do(&capacity.Plan{}) != nil || len(w.events) > 0 {
		t.Errorf("a plan after a restart emits %v", w.events)
	}
	w.must(&hosting.DeregisterCompute{Fleet: testFleet, Name: "rack-1"})
	w.checkPlan("1 3") // the host is there, so the fleet gets it again
	p.hosts = p.hosts[:1]
	w.checkPlan("1")
	p.hosts = nil
	w.checkPlan("")
	v = w.cell.View()
	if s, short := v.Shortage(testFleet, testLocation); !short || s.String() != "needs 4 hosts, has 0: no host has joined the location" {
		t.Errorf("got %q", s.String())
	}
	w.must(&hosting.DeleteFleet{ID: testFleet})
	for range 5 {
		w.must(&kernel.Tick{})
	}
	w.checkPlan("")
	v = w.cell.View()
	if _, there := v.Fleet(testFleet); there {
		t.Error("the fleet was not deleted")
	}
}

// A fleet that wants hosts can be deleted. Its game sessions end, protected or not, no policy gives it hosts again, and other fleets get them.
func TestDeletedFleetGivesUpItsHosts(t *testing.T) {
	w, p := managedHall(t, 2, host("1"), host("2"))
	w.must(&hosting.SetCapacity{Fleet: testFleet, Location: testLocation, Min: new(int32(1))})
	w.must(&hosting.PutScalingPolicy{Fleet: testFleet, Policy: fleet.ScalingPolicy{Name: "spare", TargetBased: true, Target: 50}})
	w.must(&hosting.UpdateFleetAttributes{ID: testFleet, FullProtection: new(true)})
	w.checkPlan("1 2")
	playing := w.process("1", "playing")
	w.process("2", "idle")
	w.must(&hosting.CreateFleet{Locations: []string{testLocation}, Fleet: fleet.Fleet{
		ID: "fleet-2", Region: "us-east-1", Managed: &fleet.Managed{Build: "build-1"}, Runtime: &fleet.Runtime{Launches: []fleet.Launch{{Path: "/local/game/server", Copies: 2}}},
	}})
	w.must(&hosting.SetCapacity{Fleet: "fleet-2", Location: testLocation, Desired: new(int32(2)), Max: new(int32(2))})
	w.checkPlan("1 2")
	cmd := &hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, PlayersMax: 2}
	w.must(cmd)
	w.must(&hosting.ActivateGameSession{Process: playing, Game: cmd.ID()})
	p.hosts[1].Standing = capacity.Silent

	w.must(&hosting.DeleteFleet{ID: testFleet})
	v := w.cell.View()
	f, _ := v.Fleet(testFleet)
	for _, l := range f.Locations {
		if l.Capacity.Desired != 0 || l.Capacity.Min != 0 {
			t.Errorf("while it is being deleted it wants %+v in %s", l.Capacity, l.Name)
		}
	}
	if all := v.Measure(w.now); len(all) != 0 {
		t.Errorf("its load is measured for its policies: %+v", all)
	}
	if s, short := v.Shortage(testFleet, testLocation); short {
		t.Errorf("while it is being deleted it %s", s.String())
	}
	for range 5 {
		w.must(&kernel.Tick{})
	}
	v = w.cell.View()
	if _, there := v.Fleet(testFleet); there {
		t.Fatal("the fleet was not deleted")
	}
	if g, _ := w.gameSession(cmd.ID()); g.Live() {
		t.Errorf("its game session is %s", g.Status)
	}
	p.hosts[1].Standing = capacity.Ready
	w.checkPlan("")
	v = w.cell.View()
	if n := len(v.Assignments("fleet-2", testLocation)); n != 2 {
		t.Errorf("the other fleet has %d hosts, want both", n)
	}
}

// No hosts are planned while a node of the previous release may follow.
func TestNoPlanAtAnEarlierLevel(t *testing.T) {
	config := DefaultConfig()
	config.Pool = &pool{[]capacity.Host{host("1")}}
	w := newWorld(t, config)
	w.must(&hosting.CreateLocation{Name: testLocation})
	w.must(&hosting.CreateBuild{Build: fleet.Build{ID: "build-1", Storage: fleet.Storage{Bucket: "b", Key: "k"}}})
	w.must(&hosting.CreateFleet{Locations: []string{testLocation}, Fleet: fleet.Fleet{
		ID: testFleet, Managed: &fleet.Managed{Build: "build-1"}, Runtime: &fleet.Runtime{Launches: []fleet.Launch{{Path: "/p", Copies: 1}}},
	}})
	w.want(1, 1)
	w.checkPlan("")
}

// The fleet's events tell of changed numbers only: a deployment that sets the same capacity again, or the strategy, adds none.
func TestCapacityEvents(t *testing.T) {
	w, _ := managedHall(t, 1)
	events := func() (n int) {
		v := w.cell.View()
		for _, e := range v.FleetEvents(testFleet, 0, 0, 0, 100) {
			if e.Code == "FLEET_SCALING_EVENT" {
				n++
			}
		}
		return n
	}
	before := events()
	for i, each := range []struct {
		set  hosting.SetCapacity
		more int
	}{
		{hosting.SetCapacity{Desired: new(int32(2)), Min: new(int32(1)), Max: new(int32(3))}, 1},
		{hosting.SetCapacity{Desired: new(int32(2)), Min: new(int32(1)), Max: new(int32(3))}, 0},
		{hosting.SetCapacity{}, 0},
		{hosting.SetCapacity{Max: new(int32(4))}, 1},
		{hosting.SetCapacity{FromZero: new(true)}, 1}, // sets the minimum
		{hosting.SetCapacity{FromZero: new(true), Inactivity: new(time.Hour)}, 0},
		{hosting.SetCapacity{FromZero: new(false)}, 0},
	} {
		each.set.Fleet, each.set.Location = testFleet, testLocation
		w.must(&each.set)
		if got := events() - before; got != each.more {
			t.Errorf("change %d: got %d events, want %d", i+1, got, each.more)
		}
		before = events()
	}
	v := w.cell.View()
	f, _ := v.Fleet(testFleet)
	want := fleet.Capacity{Desired: 2, Max: 4}
	if at := slices.IndexFunc(f.Locations, func(l fleet.FleetLocation) bool { return l.Name == testLocation }); f.Locations[at].Capacity != want {
		t.Errorf("got %+v, want %+v", f.Locations[at].Capacity, want)
	}
}

// AvailablePlayerSessions has the empty slots of ACTIVE game sessions, whatever their policy. A game session with more players than its
// maximum takes none away from the others.
func TestAvailablePlayerSessions(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.hall()
	want := func(n int32) {
		t.Helper()
		v := w.cell.View()
		places := v.Places(testFleet)
		if got := places[0].AvailablePlayerSessions(); got != n {
			t.Errorf("got %d, want %d", got, n)
		}
		if err := w.checkRestarts(); err != nil {
			t.Error(err)
		}
	}
	full, free := w.game("full", 3), w.game("free", 4)
	want(7)
	w.must(&hosting.ReservePlayers{Game: full, Players: []hosting.NewPlayer{{ID: playerID(1), Player: "ann"}, {ID: playerID(2), Player: "bob"}}})
	w.must(&hosting.ReservePlayers{Game: free, Players: []hosting.NewPlayer{{ID: playerID(3), Player: "cyd"}}})
	want(4)
	w.must(&hosting.UpdateGameSession{ID: full, PlayersMax: new(int32(1))})
	w.must(&hosting.UpdateGameSession{ID: free, DenyPlayers: new(true)})
	want(3)
	w.must(&hosting.ReleasePlayer{Player: playerID(1)})
	w.must(&hosting.ReleasePlayer{Player: playerID(2)})
	want(4)
	w.server("activating")
	w.must(&hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, Name: "activating", PlayersMax: 8})
	w.must(&hosting.TerminateGameSession{ID: free})
	want(1)
}

// A policy changes the desired number once, gives the reason in the fleet's events, and pauses.
func TestPolicyScales(t *testing.T) {
	w, _ := managedHall(t, 1, host("1"), host("2"), host("3"))
	w.checkPlan("1")
	w.must(&hosting.CreateGameSession{Fleet: testFleet, Location: w.ready("1"), PlayersMax: 2})
	w.must(&hosting.PutScalingPolicy{Fleet: testFleet, Policy: fleet.ScalingPolicy{
		Name: "grow", Metric: "AvailableGameSessions", Comparison: "LessThanThreshold", Threshold: 1, Periods: 2, AdjustmentType: "ChangeInCapacity", Adjustment: 1,
	}})
	var samples []capacity.Sample
	scale := func() capacity.ScaleFleet {
		t.Helper()
		v := w.cell.View()
		for _, m := range v.Measure(w.now) {
			if m.Location == testLocation {
				samples = append(samples, m.Sample)
			}
		}
		cmd := capacity.ScaleFleet{Fleet: testFleet, Location: testLocation, Samples: samples}
		w.must(&cmd)
		w.now = w.now.Add(capacity.SampleEvery)
		return cmd
	}
	if x := scale(); x.Changed {
		t.Errorf("after one minute: %+v", x.Change)
	}
	if s := samples[0]; s.ActiveInstances != 1 || s.IdleInstances != 0 || s.ActivatingGameSessions != 1 || s.AvailableGameSessions != 0 || s.AvailablePlayerSessions != 0 {
		t.Errorf("measured %+v", s)
	}
	if x := scale(); !x.Changed || x.Change.To != 2 {
		t.Errorf("after two minutes: %+v", x.Change)
	}
	w.checkPlan("1 2")
	v := w.cell.View()
	scaled := 0
	for _, e := range v.FleetEvents(testFleet, 0, 0, 0, 100) {
		if e.Code == "FLEET_SCALING_EVENT" && strings.Contains(e.Message, "from 1 to 2: policy grow: AvailableGameSessions has been below 1 for 2 minutes, now 0") {
			scaled++
		}
	}
	if scaled != 1 {
		t.Errorf("%d events tell of it", scaled)
	}
	for range 8 {
		if x := scale(); x.Changed {
			t.Errorf("while it pauses: %+v", x.Change)
		}
	}
	w.restart()
	if x := scale(); x.Changed {
		t.Errorf("while it pauses, after a restart: %+v", x.Change)
	}
	if x := scale(); !x.Changed || x.Change.To != 3 {
		t.Errorf("after the pause: %+v", x.Change)
	}
	w.must(&hosting.SwitchScaling{Fleet: testFleet, Location: testLocation, Stop: true})
	w.now = w.now.Add(time.Hour)
	if x := scale(); x.Changed || len(samples) == 0 {
		t.Errorf("with AUTO_SCALING stopped: %+v", x.Change)
	}
	w.must(&capacity.Plan{}) // forgets when the policy acted
	if w.do(&capacity.Plan{}) != nil || len(w.events) > 0 {
		t.Errorf("a plan after that emits %v", w.events)
	}
}

// ready makes the fleet ACTIVE with a process on a host, and returns the location.
func (w *world) ready(host string) string {
	w.process(host, "p")
	w.plan()
	return testLocation
}

// A process that crashes in a loop gets ten single events, and then one event that counts the others. Other kinds of events are not affected, and after some
// time without crashes, events are single again.
func TestCrashLoopIsCounted(t *testing.T) {
	w, _ := managedHall(t, 1, host("1"))
	w.checkPlan("1")
	crash := func() {
		t.Helper()
		key := w.process("1", "p")
		w.must(&hosting.ConnectProcess{Process: key, Link: 8})
		w.must(&hosting.ActivateProcess{Process: key, Link: 8, Request: kernel.RequestHash(fmt.Sprint("again", w.seed))})
		w.must(&hosting.LoseLink{Process: key, Link: 8})
		w.now = w.now.Add(w.cell.config.Hosting.LinkGrace)
		w.must(&kernel.Tick{})
	}
	count := func() (events int, times int64) {
		v := w.cell.View()
		for _, e := range v.FleetEvents(testFleet, 0, 0, 0, 1000) {
			if e.Code == "SERVER_PROCESS_CRASHED" {
				events, times = events+1, times+e.Times()
			}
		}
		return events, times
	}
	w.cell.config.Hosting.LinkGrace = time.Second
	for i := range 100 {
		crash()
		events, times := count()
		if events > 10 || times != int64(i+1) {
			t.Fatalf("after %d crashes %d events tell of %d", i+1, events, times)
		}
	}
	w.restart()
	if events, times := count(); events != 10 || times != 100 {
		t.Errorf("after a restart %d events tell of %d crashes", events, times)
	}
	w.now = w.now.Add(time.Hour)
	crash()
	if events, times := count(); events != 11 || times != 101 {
		t.Errorf("after an hour %d events tell of %d crashes", events, times)
	}
}

// The replacement of a silent host is one event of the fleet. The release of a host that a fleet no longer needs is not an event.
func TestReplacedHostIsAnEvent(t *testing.T) {
	w, p := managedHall(t, 1, host("1"), host("2"))
	w.checkPlan("1")
	count := func() (n int) {
		v := w.cell.View()
		for _, e := range v.FleetEvents(testFleet, 0, 0, 0, 100) {
			if e.Code == "INSTANCE_REPLACED_UNHEALTHY" && strings.Contains(e.Message, "Host rack-1 of fleet "+testFleet+" in "+testLocation) {
				n++
			}
		}
		return n
	}
	p.hosts[0].Standing = capacity.Silent
	for range 5 {
		w.plan()
	}
	if got := w.plan(); got != "2" || count() != 1 {
		t.Errorf("the fleet has the hosts %q and %d events, want 2 and one event", got, count())
	}
	w.want(0, 10)
	w.plan()
	if count() != 1 {
		t.Errorf("%d events", count())
	}
}
