package operator

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// A fleet says whether it takes game sessions, why not, and what to do next.
func TestWhyAFleetTakesNoGameSessions(t *testing.T) {
	o := newOffice(t)
	look := func(why, next string) {
		t.Helper()
		if x := o.explain("fleet/fleet-1"); x.Status != "ACTIVE" || !strings.Contains(x.Why, why) || (next == "") != (x.Next == "") || !strings.Contains(x.Next, next) {
			t.Errorf("got %s: %s Next: %s\nwant %q and %q", x.Status, x.Why, x.Next, why, next)
		}
	}
	o.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-2", Region: "us-east-1", Name: "empty"}, Locations: []string{"custom-a"}})
	if x := o.explain("fleet/fleet-2"); !strings.Contains(x.Why, "no compute is registered in custom-a") || !strings.Contains(x.Next, "register-compute --fleet-id fleet-2") {
		t.Errorf("got %+v", x)
	}
	look("no server process is connected in its 2 locations", "get-compute-auth-token")
	key := o.connect("s1")
	look("the only server process in its 2 locations has not called ProcessReady", "call ProcessReady")
	o.do(&hosting.ActivateProcess{Process: key, Link: o.links, Port: 7777, Request: 1})
	look("has not reported its health yet", "first health report")
	o.do(&hosting.ReportHealth{Process: key, Healthy: true})
	look("1 server process is free, 1 in custom-a", "")
	o.do(&hosting.CreateGameSession{Fleet: "fleet-1", Location: "custom-a", Name: "g1", PlayersMax: 4})
	look("hosts a game session", "more server processes")
	x := o.explain("fleet/arn:aws:gamelift:us-east-1::fleet/fleet-1")
	if x.known("server processes") != "1: 1 HOSTING" || x.known("game sessions") != "1" || len(x.Places) != 2 ||
		x.Places[0].Outcome != "NO_FREE_PROCESS" || x.Places[0].Detail == "" || !strings.Contains(x.Places[1].Detail, "no compute") {
		t.Errorf("got %+v", x)
	}
	order := slices.IndexFunc(x.Timeline, func(m Moment) bool { return m.What == "FLEET_CREATED" })
	if active := slices.IndexFunc(x.Timeline, func(m Moment) bool { return m.What == "FLEET_STATE_ACTIVE" }); order != 0 || active < 1 {
		t.Errorf("a fleet is not created first: %v", x.Timeline)
	}
	if status, _ := o.ask("explain/fleet/fleet-9"); status != http.StatusNotFound {
		t.Errorf("a fleet that there is not: %d", status)
	}
}

// So does a compute.
func TestWhyAComputeTakesNoGameSessions(t *testing.T) {
	o := newOffice(t)
	look := func(why, next string) {
		t.Helper()
		for _, id := range []string{"fleet-1/rack/host", "rack/host"} {
			if x := o.explain("compute/" + id); x.ID != "fleet-1/rack/host" || !strings.Contains(x.Why, why) || (next == "") != (x.Next == "") || !strings.Contains(x.Next, next) {
				t.Errorf("%s: got %s: %s Next: %s\nwant %q and %q", id, x.ID, x.Why, x.Next, why, next)
			}
		}
	}
	look("no auth token was ever issued", "get-compute-auth-token --fleet-id fleet-1 --compute-name rack/host")
	o.do(&hosting.IssueToken{Fleet: "fleet-1", Compute: "rack/host"})
	look("no server process is connected on it", "must call InitSDK")
	key := o.ready("s1")
	look("1 server process is free", "")
	o.do(&hosting.ReportHealth{Process: key, Healthy: false, LastHealthy: domain.TimeOf(o.engine.Now())})
	look("the only server process on it is unhealthy or silent", "health callback")
	o.do(&hosting.ReportHealth{Process: key, Healthy: true})
	o.do(&cell.TagResource{Resource: cell.Resource{Kind: cell.ComputeResource, ID: "fleet-1/rack/host"}, Tags: []fleet.Tag{{Key: fleet.DrainTag, Value: "true"}}})
	look("it is being drained", "--undo")

	o.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-2", Region: "us-east-1", Name: "f2"}, Locations: []string{"custom-a"}})
	o.do(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: "fleet-2", Name: "rack/host", Location: "custom-a", IPAddress: "127.0.0.1"}})
	if status, body := o.ask("explain/compute/rack/host"); status != http.StatusConflict || !strings.Contains(body, "fleet-2") {
		t.Errorf("two computes of one name: %d %s", status, body)
	}
	if status, _ := o.ask("explain/compute/fleet-1/none"); status != http.StatusNotFound {
		t.Errorf("a compute that there is not: %d", status)
	}
}
