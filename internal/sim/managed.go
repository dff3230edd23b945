package sim

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// anywhere returns the fleets that can host game sessions: no agent ever joins those of a build.
func anywhere(v *cell.View) (all []fleet.Fleet) {
	for _, f := range v.Fleets(0, "", 100) {
		if f.Managed == nil {
			all = append(all, f)
		}
	}
	return all
}

func createBuild(w *Wishes, _ *cell.View) kernel.Command {
	b := fleet.Build{ID: fmt.Sprint("build-", w.chance.IntN(3)), Region: "us-east-1", OperatingSystem: "AMAZON_LINUX_2023"}
	if !w.oneIn(4) {
		b.Storage = fleet.Storage{Bucket: "builds", Key: b.ID}
	}
	return &hosting.CreateBuild{Build: b}
}

func createManagedFleet(w *Wishes, v *cell.View) kernel.Command {
	if len(v.Fleets(0, "", 100))-len(anywhere(v)) > 1 {
		return nil
	}
	id := fmt.Sprint("fleet-", w.number())
	return &hosting.CreateFleet{
		Fleet: fleet.Fleet{ID: id, Region: "us-east-1", Account: "1", Name: id, Runtime: w.runtime(2), Managed: &fleet.Managed{
			Build: fmt.Sprint("build-", w.chance.IntN(3)), InstanceType: "c5.large",
		}},
		Locations: []string{w.locationName()},
	}
}

// runtime sets a low limit of activations, so that it is reached, and never a longer time than the installation.
func (w *Wishes) runtime(launches int) *fleet.Runtime {
	r := &fleet.Runtime{ActivationsMax: int32(w.chance.IntN(3)), ActivationTimeout: time.Duration(w.chance.IntN(300)) * time.Second}
	for i := range launches {
		r.Launches = append(r.Launches, fleet.Launch{Path: fmt.Sprint("/local/game/", i), Copies: int32(1 + w.chance.IntN(30))})
	}
	return r
}

func updateRuntime(w *Wishes, v *cell.View) kernel.Command {
	f, _ := w.fleet(v)
	launches := 0
	if f.Managed != nil {
		launches = 1
	}
	return &hosting.UpdateRuntime{Fleet: f.ID, Runtime: *w.runtime(launches)}
}

func setCapacity(w *Wishes, v *cell.View) kernel.Command {
	f, _ := w.fleet(v)
	desired, most := int32(w.chance.IntN(3)), int32(w.chance.IntN(4))
	return &hosting.SetCapacity{Fleet: f.ID, Desired: &desired, Max: &most}
}

func switchScaling(w *Wishes, v *cell.View) kernel.Command {
	f, _ := w.fleet(v)
	return &hosting.SwitchScaling{Fleet: f.ID, Stop: w.oneIn(2)}
}

func putScalingPolicy(w *Wishes, v *cell.View) kernel.Command {
	f, _ := w.fleet(v)
	return &hosting.PutScalingPolicy{Fleet: f.ID, Policy: fleet.ScalingPolicy{Name: fmt.Sprint("policy-", w.chance.IntN(3)), TargetBased: true, Target: float64(w.chance.IntN(100))}}
}

func deleteScalingPolicy(w *Wishes, v *cell.View) kernel.Command {
	f, _ := w.fleet(v)
	return &hosting.DeleteScalingPolicy{Fleet: f.ID, Name: fmt.Sprint("policy-", w.chance.IntN(3))}
}
