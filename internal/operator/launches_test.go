package operator

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// An agent's report on entries that do not run is in the list of hosts, and in the explanations of the fleet, the compute and its processes.
func TestTroublesAreShown(t *testing.T) {
	o := newOffice(t)
	o.do(&kernel.RaiseLevel{To: kernel.Level})
	o.do(&hosts.IssueToken{ID: "t", Hash: "h", Location: "custom-a", Uses: 1, Valid: hosts.ValidMax})
	join := &hosts.Join{Token: "t", Hash: "h", Name: "rack", Key: make([]byte, 32)}
	o.do(join)
	o.door.config.Reports = func() []*agentproto.Report {
		return []*agentproto.Report{
			{Host: join.Host.ID, Fleet: "fleet-1", Compute: "rack/host", Shared: []string{"192.0.2.1", "192.0.2.2"}, Launches: []agentproto.LaunchState{
				{LaunchPath: "good", Wanted: 1, Running: 1, State: agentproto.LaunchRunning},
				{LaunchPath: "server", Wanted: 2, State: agentproto.LaunchBackingOff, Cause: agentproto.CauseBuild, Reason: "build-1 cannot be fetched: no route to host", NextTryMillis: 1},
			}},
			{Fleet: "fleet-2", Compute: "rack/host", Launches: []agentproto.LaunchState{{LaunchPath: "other", State: agentproto.LaunchFailed}}},
		}
	}
	o.door.config.Attention = attention.New(attention.Config{Engine: o.engine, Reports: o.door.config.Reports})
	const want = "server: 0 of 2 run, it waits after a failure, next try at 1970-01-01T00:00:00Z: build-1 cannot be fetched: no route to host"
	_, text := o.ask("hosts")
	var list HostList
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Hosts) != 1 || len(list.Hosts[0].SharedBy) != 2 || len(list.Hosts[0].Troubles) != 1 || attention.Launch(&list.Hosts[0].Troubles[0]) != want {
		t.Errorf("%s", text)
	}
	o.connect("s1")
	for _, path := range []string{"fleet/fleet-1", "compute/fleet-1/rack/host", "process/fleet-1/rack/host/s1"} {
		x := o.explain(path)
		if x.known("launch on rack/host") != want {
			t.Errorf("%s: %+v", path, x)
		}
		if !strings.HasPrefix(path, "process") && !strings.Contains(x.Why, "no route to host") {
			t.Errorf("%s: %s", path, x.Why)
		}
	}
}
