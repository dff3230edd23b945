package hosting

import (
	"time"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// interruptionNotice is the most time that the server processes of an interrupted host get. A cloud gives two minutes of notice, and the
// agent ends what is still running half a minute before they are over.
const interruptionNotice = 90 * time.Second

// InterruptCompute records that the machine of a compute is about to be taken away. The compute gets no new game sessions, and its server processes
// are asked to end. A repeat changes nothing.
type InterruptCompute struct{ Fleet, Compute string }

// Decide emits ComputeRegistered with the drain tag, and ProcessTerminationAsked for each ready process.
func (cmd *InterruptCompute) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, x, err := t.computeByName(cmd.Fleet, cmd.Compute)
	if err != nil {
		return err
	}
	if !x.Draining() {
		message := "Compute " + x.Name + " in " + x.Location + " is being reclaimed, its agent reports: it gets no new game sessions, and its server processes are asked to end"
		t.DrainHost(cmd.Fleet, cmd.Compute, true)
		t.fleetEvent(cmd.Fleet, "GENERIC_EVENT", message)
	}
	var ready []fleet.ProcessRef
	t.Fleets.ProcessesOn(r, func(p fleet.ProcessRef, process *fleet.Process) bool {
		if process.State == fleet.ProcessReady {
			ready = append(ready, p)
		}
		return true
	})
	for _, p := range ready {
		t.askTerminationWithin(p, fleet.EndedWithCompute, min(interruptionNotice, t.Config.TerminateGrace))
	}
	return nil
}
