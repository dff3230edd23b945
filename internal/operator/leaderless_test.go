package operator

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
)

// crowd is the people of a cell whose group "ops" gives a role.
type crowd struct{ People }

func (crowd) OwnRoles([]string) access.RoleSet { return 0 }
func (crowd) OwnGroups() []string              { return []string{"ops"} }
func (crowd) WhyNoPasskeys() string            { return "" }

// If the leader is lost during a change, the answer says whether the change was made.
func TestLeaderLostDuringAChange(t *testing.T) {
	peers := &enginetest.Leading{}
	e := enginetest.Open(t, engine.Config{Cell: cell.DefaultConfig(), Peers: peers, Patience: time.Millisecond})
	d := NewDoor(Config{Engine: e, People: crowd{}, Private: func(*http.Request) bool { return true }, Log: slog.New(slog.DiscardHandler)})
	process := fleet.Key{Fleet: "fleet-2", Compute: "host", Process: "p"}
	for _, cmd := range []kernel.Command{
		&kernel.RaiseLevel{To: kernel.Level}, &hosting.CreateLocation{Name: "custom-a"},
		&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-1", Region: "us-east-1"}, Locations: []string{"custom-a"}},
		&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-2", Region: "us-east-1"}, Locations: []string{"custom-a"}},
		&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: "fleet-2", Name: "host", Location: "custom-a", IPAddress: "127.0.0.1"}},
		&hosting.ConnectProcess{Process: process, Link: 1}, &hosting.ActivateProcess{Process: process, Link: 1, Port: 7777, Request: 1},
		&hosting.ReportHealth{Process: process, Healthy: true},
		&hosting.CreateAlias{Alias: fleet.Alias{ID: "alias-1", Region: "us-east-1", Name: "live", Fleet: "fleet-1"}},
	} {
		if err := e.Do(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
	}
	peers.Lost.Store(true)
	r := httptest.NewRequest("POST", Prefix, nil)
	x, err := d.startRollout(r, access.Actor{Principal: "ops"}, &NewRollout{Alias: "live", To: "fleet-2", Steps: []int32{10, 100}, StepSeconds: 60, Failures: 3, FailurePercent: 20})
	if got, _ := x.(Rollout); err != nil || got.Alias != "alias-1" || got.Name != "live" || got.To != "fleet-2" || got.Percent != 10 || got.StepEnds.IsZero() {
		t.Errorf("a rollout began: %+v, %v", x, err)
	}
	x, err = d.undoRollout(r, access.Actor{Principal: "ops"}, &RolloutUndo{Alias: "live"})
	if got, _ := x.(Rollout); err != nil || got.Phase != "UNDONE" {
		t.Errorf("a rollout was undone: %+v, %v", x, err)
	}

	if _, err := d.newPerson(r, access.Actor{}, &NewPerson{Name: "Ann", Groups: []string{"ops"}}); err == nil {
		t.Fatal("a person was added although the warnings are unknown")
	}
	_ = e.ReadHere(t.Context(), func(v *cell.View) error {
		if all := v.People(); len(all) != 0 {
			t.Errorf("the request has failed, but there are the people %+v", all)
		}
		return nil
	})
}
