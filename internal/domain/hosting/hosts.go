package hosting

import (
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
)

// This file has what hosting offers to the room that gives hosts to the fleets of builds.

// ManagedFleets yields the fleets of builds in creation order.
func (c *State) ManagedFleets(yield func(*fleet.Fleet) bool) {
	c.Fleets.FleetsFrom(0, "", func(f *fleet.Fleet) bool { return f.Managed == nil || yield(f) })
}

// ManagedFleet finds a fleet of a build.
func (c *State) ManagedFleet(id string) (*fleet.Fleet, bool) {
	r, ok := c.Fleets.Fleet(id)
	if !ok || c.fleet(r).Managed == nil {
		return nil, false
	}
	return c.fleet(r), true
}

// HostCompute returns the compute that a host is in a fleet.
func (c *State) HostCompute(fleetID, name string) (*fleet.Compute, bool) {
	r, ok := c.Fleets.Compute(fleetID, name)
	if !ok {
		return nil, false
	}
	return c.compute(r), true
}

// JoinHost makes a host a compute of a fleet, which has none of that name.
func (t *Tx) JoinHost(x fleet.Compute) {
	x.Created, x.Registration = t.Now, t.NewID()
	t.Emit(&ComputeRegistered{x})
}

// DrainHost stops new game sessions on a compute, or allows them again.
func (t *Tx) DrainHost(fleetID, name string, drain bool) {
	r, ok := t.Fleets.Compute(fleetID, name)
	if !ok || t.compute(r).Draining() == drain {
		return
	}
	x := *t.compute(r)
	x.Tags = slices.DeleteFunc(slices.Clone(x.Tags), func(tag fleet.Tag) bool { return tag.Key == fleet.DrainTag })
	if drain {
		x.Tags = append(x.Tags, fleet.Tag{Key: fleet.DrainTag, Value: "true"})
	}
	t.Emit(&ComputeRegistered{x})
}

// EndIdle asks the server processes of a compute that host no game session to end. Those that host one stay, and one that is not ready yet is asked when it is:
// the server SDK has no callback for it before.
func (t *Tx) EndIdle(fleetID, name string) {
	r, ok := t.Fleets.Compute(fleetID, name)
	if !ok {
		return
	}
	var idle []fleet.ProcessRef
	t.Fleets.ProcessesOn(r, func(p fleet.ProcessRef, x *fleet.Process) bool {
		if x.State == fleet.ProcessReady && x.Session == 0 {
			idle = append(idle, p)
		}
		return true
	})
	for _, p := range idle {
		t.askTermination(p, fleet.EndedWithCompute)
	}
}

// LeaveHost removes a compute, and ends what is left on it.
func (t *Tx) LeaveHost(fleetID, name string) {
	if r, ok := t.Fleets.Compute(fleetID, name); ok {
		t.removeCompute(r)
	}
}

// fleetSteps are the statuses of a fleet of a build on its way to ACTIVE. VALIDATING and BUILDING have no work of their own here: an agent
// checks the build while it fetches it.
var fleetSteps = []string{"NEW", "DOWNLOADING", "VALIDATING", "BUILDING", "ACTIVATING", "ACTIVE"}

// AdvanceFleet moves a fleet of a build towards ACTIVE: with its first host it is DOWNLOADING, with the first server process that has connected
// ACTIVATING, and with the first one that is ready ACTIVE, for good.
func (t *Tx) AdvanceFleet(id string) {
	r, ok := t.Fleets.Fleet(id)
	if !ok {
		return
	}
	f := *t.fleet(r)
	if f.Managed == nil || f.Status == fleet.Active || f.Status == fleet.Deleting {
		return
	}
	next := fleet.Downloading
	for _, l := range f.Locations {
		switch n := t.Fleets.SiteCounts(id, l.Name); {
		case n.Processes > 0:
			next = fleet.Active
		case n.Running() > 0 && next != fleet.Active:
			next = fleet.Activating
		}
	}
	from, to := slices.Index(fleetSteps, f.Status.String()), slices.Index(fleetSteps, next.String())
	if to <= from {
		return
	}
	f.Status, f.Locations = next, slices.Clone(f.Locations)
	for i := range f.Locations {
		if l := &f.Locations[i]; l.Status != fleet.Deleting {
			l.Status = next
		}
	}
	t.Emit(&FleetChanged{f})
	for _, state := range fleetSteps[from+1 : to+1] {
		t.fleetEvent(id, "FLEET_STATE_"+state, "Fleet "+id+" changed state to "+state)
	}
	if next == fleet.Active {
		for _, l := range f.Locations {
			if l.Status == fleet.Active {
				t.fleetEvent(id, "LOCATION_STATE_ACTIVE", "Location "+l.Name+" of fleet "+id+" changed state to ACTIVE")
			}
		}
		t.replanAll(t.Now)
	}
}

// HostReplaced says in the fleet's events that a host which is not connected makes room for others. Source: docs/spec/events.md#fleet-events.
func (t *Tx) HostReplaced(fleetID, location, name string) {
	t.fleetEvent(fleetID, "INSTANCE_REPLACED_UNHEALTHY", fmt.Sprintf("Host %s of fleet %s in %s was replaced: its agent is not connected, and the fleet has as many hosts as it wants without it", name, fleetID, location))
}

// Scale sets the desired number of hosts in a location, and says why in the fleet's events.
func (t *Tx) Scale(fleetID, location string, desired int32, why string) {
	r, ok := t.Fleets.Fleet(fleetID)
	if !ok {
		return
	}
	old := t.fleet(r)
	at := slices.IndexFunc(old.Locations, func(l fleet.FleetLocation) bool { return l.Name == location })
	if at < 0 {
		return
	}
	from := old.Locations[at].Capacity.Desired
	t.Emit(&FleetChanged{changedAt(old, at, func(l *fleet.FleetLocation) { l.Capacity.Desired = desired })})
	t.fleetEvent(fleetID, "FLEET_SCALING_EVENT", fmt.Sprintf("Desired instances of fleet %s in %s changed from %d to %d: %s", fleetID, location, from, desired, why))
}

// CheckSite refuses a fleet that hosts cannot join, or a location that there is not. Each may be empty.
func (t *Tx) CheckSite(fleetID, location string) error {
	if fleetID == "" {
		if _, ok := t.Fleets.Location(location); ok {
			return nil
		}
		for _, f := range t.Fleets.Fleets.All() {
			if _, ok := f.HasLocation(location); ok {
				return nil
			}
		}
		return domain.Refuse(domain.NotFound, "location %.200q not found", location)
	}
	_, f, err := t.fleetByID(fleetID)
	if err != nil {
		return err
	}
	if f.Status == fleet.Deleting {
		return domain.Refuse(domain.Invalid, "%s", notActive(f))
	}
	if status, ok := f.HasLocation(location); location != "" && (!ok || status == fleet.Deleting) {
		return domain.Refuse(domain.Invalid, "location %.200q: fleet %s has %s", location, f.ID, locationNames(f))
	}
	return nil
}

// AdmitHost makes a host a compute of an ANYWHERE fleet that it is bound to, and changes the address of one that it is already.
func (t *Tx) AdmitHost(x fleet.Compute) error {
	r, ok := t.Fleets.Compute(x.FleetID, x.Name)
	if !ok {
		return (&RegisterCompute{Compute: x}).register(t)
	}
	if old := t.compute(r); old.IPAddress != x.IPAddress || old.DNSName != x.DNSName {
		changed := *old
		changed.IPAddress, changed.DNSName = x.IPAddress, x.DNSName
		t.Emit(&ComputeRegistered{changed})
	}
	return nil
}
