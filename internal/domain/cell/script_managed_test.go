package cell

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
)

// managedCommand makes a command about what hosts are to run and how many there are to be; nil when it is another one.
func (s *script) managedCommand(verb string, a arguments, fleetID string) kernel.Command {
	optional := func(key string) *int32 {
		if _, ok := a.find(key); !ok {
			return nil
		}
		n := a.number(key, 0)
		return &n
	}
	switch verb {
	case "create-build":
		b := fleet.Build{ID: a.or("build", "build-1"), Region: "us-east-1", OperatingSystem: "AMAZON_LINUX_2023", Tags: a.tags("tags")}
		if a.or("empty", "") == "" {
			b.Storage = fleet.Storage{Bucket: "builds", Key: "game.zip"}
		}
		return &hosting.CreateBuild{Build: b}
	case "create-managed":
		f := fleet.Fleet{ID: fleetID, Region: "us-east-1", Runtime: a.runtime(), Managed: &fleet.Managed{
			Build: a.or("build", "build-1"), InstanceType: a.or("instance", "c5.large"),
		}}
		return &hosting.CreateFleet{Fleet: f, Locations: a.list("locations")}
	case "update-runtime":
		return &hosting.UpdateRuntime{Fleet: fleetID, Runtime: *cmp.Or(a.runtime(), &fleet.Runtime{})}
	case "set-capacity":
		cmd := &hosting.SetCapacity{
			Fleet: fleetID, Location: a.or("location", ""), Desired: optional("desired"), Min: optional("min"), Max: optional("max"), FromZero: a.flag("from-zero"),
		}
		if d := a.duration("inactivity"); d != 0 {
			cmd.Inactivity = &d
		}
		return cmd
	case "stop-scaling", "start-scaling":
		return &hosting.SwitchScaling{Fleet: fleetID, Location: a.or("location", ""), Stop: verb == "stop-scaling"}
	case "put-policy":
		return &hosting.PutScalingPolicy{Fleet: fleetID, Policy: fleet.ScalingPolicy{Name: a.or("name", ""), TargetBased: true, Target: float64(a.number("target", 0))}}
	case "delete-policy":
		return &hosting.DeleteScalingPolicy{Fleet: fleetID, Name: a.or("name", "")}
	case "create-queue":
		q := placement.Queue{Name: a.or("queue", "q"), Region: "us-east-1", Tags: a.tags("tags")}
		for _, name := range a.list("to", testFleet) {
			kind := "fleet/"
			if strings.HasPrefix(name, "alias-") {
				kind = "alias/"
			}
			q.Destinations = append(q.Destinations, "arn:aws:gamelift:us-east-1::"+kind+name)
		}
		return &hosting.CreateQueue{Queue: q}
	case "create-alias":
		return &hosting.CreateAlias{Alias: fleet.Alias{ID: a.or("alias", "alias-1"), Fleet: fleetID, Tags: a.tags("tags")}}
	case "start-placement":
		p := placement.Placement{ID: a.or("placement", "p"), Queue: a.or("queue", "q"), PlayersMax: 4}
		return &hosting.StartPlacement{Placement: p, ArchivedID: kernel.ArchivedID{ArchivedAt: s.cell.Forgotten()}}
	case "stop-placement":
		return &hosting.StopPlacement{ID: a.or("placement", "p")}
	}
	return nil
}

// runtime parses "launches=server:3,client:1", "activations=2" and "timeout=30s". It returns nil if none is given.
func (a arguments) runtime() *fleet.Runtime {
	r := fleet.Runtime{ActivationsMax: a.number("activations", 0), ActivationTimeout: a.duration("timeout")}
	for _, p := range a.pairs("launches") {
		var copies int32
		fmt.Sscan(p[1], &copies)
		r.Launches = append(r.Launches, fleet.Launch{Path: p[0], Copies: copies})
	}
	if r.Launches == nil && r.ActivationsMax == 0 && r.ActivationTimeout == 0 {
		return nil
	}
	return &r
}

// managedDetails describes what a fleet is to run and how many hosts it is to have.
func managedDetails(f *fleet.Fleet) (text string) {
	if r := f.Runtime; r != nil {
		text += fmt.Sprintf(" launches=%d activations=%d timeout=%s", r.Copies(), r.ActivationsMax, r.ActivationTimeout)
	}
	if m := f.Managed; m != nil {
		text += " build=" + m.Build
		for _, p := range m.Policies {
			text += fmt.Sprintf(" policy=%s(%g)", p.Name, p.Target)
		}
	}
	return text
}

func capacityDetails(l fleet.FleetLocation) (text string) {
	if c := l.Capacity; c != (fleet.Capacity{}) {
		text = fmt.Sprintf("[%d in %d..%d", c.Desired, c.Min, c.Max) + when(c.FromZero, " from zero after "+c.Inactivity.String()) + "]"
	}
	return text + when(l.ScalingStopped, "(scaling stopped)")
}

// placementDetails returns a placement's event in the words of the scripts.
func placementDetails(e kernel.Event) string {
	switch e := e.(type) {
	case *hosting.PlacementStarted:
		return e.Placement.ID
	case *hosting.PlacementRetried:
		return e.ID
	case *hosting.PlacementEnded:
		text := e.ID + " " + e.Status.String()
		for _, t := range e.Passed {
			text += "\n  " + strings.TrimSpace(t.Fleet+" "+t.Location) + ": " + t.Outcome.String() + when(t.Detail != "", ", "+t.Detail)
		}
		return text
	}
	return ""
}
