package cell

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// computes makes a hall of three computes with three servers each.
func (w *world) computes() {
	w.hall()
	for _, name := range []string{testCompute, "host-b", "host-c"} {
		if name != testCompute {
			w.must(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: testFleet, Name: name, Location: testLocation, IPAddress: "127.0.0.1"}})
		}
		for i := range 3 {
			key := fleet.Key{Fleet: testFleet, Compute: name, Process: fmt.Sprint(name, "-", i)}
			w.must(&hosting.ConnectProcess{Process: key, Link: 7})
			w.must(&hosting.ActivateProcess{Process: key, Link: 7, Port: 7777, Request: kernel.RequestHash(key.Process)})
			w.must(&hosting.ReportHealth{Process: key, Healthy: true})
		}
	}
}

// nextOn creates a game session and tells on which compute it is.
func (w *world) nextOn(name string) string {
	cmd := &hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, Name: name, PlayersMax: 2}
	if err := w.do(cmd); err != nil {
		return err.Error()
	}
	return cmd.Game.ComputeName
}

func (w *world) tag(kind ResourceKind, id, key, value string) error {
	return w.do(&TagResource{Resource: Resource{kind, id}, Tags: []fleet.Tag{{Key: key, Value: value}}})
}

func TestComputesFillUpOneAfterAnother(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.computes()
	for i, want := range []string{"host", "host", "host", "host-b", "host-b", "host-b", "host-c"} {
		if got := w.nextOn(fmt.Sprint("g", i)); got != want {
			t.Errorf("game session %d is on %s, want %s", i, got, want)
		}
	}
}

func TestGameSessionsAreSpread(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.computes()
	if got := w.nextOn("first"); got != testCompute {
		t.Fatalf("packed on %s", got)
	}
	if err := w.tag(FleetResource, testFleet, fleet.PackingTag, fleet.Spread); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"host-b", "host-c", "host", "host-b", "host-c", "host", "host-b", "host-c"} {
		if got := w.nextOn(fmt.Sprint("g", i)); got != want {
			t.Errorf("game session %d is on %s, want %s", i, got, want)
		}
		if err := w.checkRestarts(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDrainedComputeGetsNothingNew(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.computes()
	running := w.nextOn("before")
	if err := w.tag(ComputeResource, testFleet+"/"+testCompute, fleet.DrainTag, "true"); err != nil {
		t.Fatal(err)
	}
	if got := w.nextOn("g1"); running != testCompute || got != "host-b" {
		t.Errorf("before on %s, then on %s", running, got)
	}
	// It registers again, as agents do at every start, and stays drained.
	w.must(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: testFleet, Name: testCompute, Location: testLocation, IPAddress: "127.0.0.2"}})
	v := w.cell.View()
	if n := v.Utilization(testFleet, "").IdleProcesses; n != 5 {
		t.Errorf("%d processes could take a game session, want 5", n)
	}
	if err := w.checkRestarts(); err != nil {
		t.Error(err)
	}
	w.must(&TagResource{Resource: Resource{ComputeResource, testCompute}, Untag: []string{fleet.DrainTag}})
	if got := w.nextOn("g2"); got != testCompute {
		t.Errorf("after the drain on %s", got)
	}
	if err := w.checkRestarts(); err != nil {
		t.Error(err)
	}
}

func TestOwnTagsThatMeanNothing(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.hall()
	w.must(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-2", Region: "us-east-1", Name: "other"}, Locations: []string{testLocation}})
	w.must(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: "fleet-2", Name: testCompute, Location: testLocation, IPAddress: "127.0.0.1"}})
	for name, err := range map[string]error{
		"wrong value":    w.tag(FleetResource, testFleet, fleet.PackingTag, "sprayed"),
		"wrong place":    w.tag(FleetResource, testFleet, fleet.DrainTag, "true"),
		"unknown":        w.tag(ComputeResource, testFleet+"/"+testCompute, "muster:drian", "true"),
		"which of two":   w.tag(ComputeResource, testCompute, fleet.DrainTag, "true"),
		"in a new fleet": w.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-3", Tags: []fleet.Tag{{Key: "muster:x"}}}, Locations: []string{testLocation}}),
	} {
		if r, ok := err.(*domain.Refusal); !ok || r.Reason != domain.Invalid {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
}
