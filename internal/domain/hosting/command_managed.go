package hosting

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// checkManaged checks a new fleet of a build and fills in the build's values.
func (t *Tx) checkManaged(f *fleet.Fleet) error {
	m := *f.Managed
	b, err := t.buildByID(m.Build)
	switch {
	case err != nil:
		return err
	case b.Failure != "":
		return domain.Refuse(domain.NotReady, "build %s is FAILED: %s", b.ID, b.Failure)
	case !b.Ready():
		return domain.Refuse(domain.NotReady, "build %s is INITIALIZED: its files have not been uploaded, and it has no StorageLocation", b.ID)
	case f.Cost != nil:
		return domain.Refuse(domain.Invalid, "AnywhereConfiguration: only an ANYWHERE fleet has one")
	case f.Runtime == nil:
		return domain.Refuse(domain.Invalid, "RuntimeConfiguration: required")
	}
	m.BuildRegion, m.BuildAccount, m.OperatingSystem, m.Manifest = b.Region, b.Account, b.OperatingSystem, b.Manifest
	f.Managed = &m
	return nil
}

// checkRuntime checks a runtime configuration; nil is none.
func (t *Tx) checkRuntime(f *fleet.Fleet, r *fleet.Runtime) error {
	switch {
	case r == nil:
		return nil
	case f.Managed != nil && len(r.Launches) == 0:
		return domain.Refuse(domain.Invalid, "RuntimeConfiguration.ServerProcesses: required, at least one")
	}
	if n, most := r.Copies(), t.Config.LaunchesOnComputeMax; n > int64(most) {
		return domain.Refuse(domain.LimitExceeded, "RuntimeConfiguration.ServerProcesses: %d processes on each host; the limit is %d", n, most)
	}
	return nil
}

// UpdateRuntime replaces a fleet's runtime configuration. Game sessions that are already ACTIVATING keep their deadline.
type UpdateRuntime struct {
	Fleet   string
	Runtime fleet.Runtime
}

func (cmd *UpdateRuntime) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	old, err := t.lastingFleet(cmd.Fleet)
	if err != nil {
		return err
	}
	if err := t.checkRuntime(old, &cmd.Runtime); err != nil {
		return err
	}
	f := *old
	f.Runtime = &cmd.Runtime
	t.Emit(&FleetChanged{f})
	return nil
}

// managedFleet finds a fleet of a build that is not being deleted. It refuses an ANYWHERE fleet, because its owner adds and removes the
// hosts.
func (t *Tx) managedFleet(id, what string) (*fleet.Fleet, error) {
	f, err := t.lastingFleet(id)
	if err == nil && f.Managed == nil {
		err = domain.Refuse(domain.Invalid, "%s not supported for this fleet: %s is an ANYWHERE fleet, whose hosts register themselves", what, id)
	}
	return f, err
}
