package hosting

import (
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
)

// This file has hosting's operations for the room that assigns hosts to fleets of builds.

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

// HostCompute returns the compute of a fleet that represents a host.
func (c *State) HostCompute(fleetID, name string) (*fleet.Compute, bool) {
	r, ok := c.Fleets.Compute(fleetID, name)
	if !ok {
		return nil, false
	}
	return c.compute(r), true
}

// JoinHost makes a host a compute of a fleet. The fleet must not have a compute of that name.
func (t *Tx) JoinHost(x fleet.Compute) {
	x.Created, x.Registration = t.Now, t.NewID()
	t.Emit(&ComputeRegistered{x})
}

// DrainHost stops or resumes new game sessions on a compute.
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

// EndIdle asks the server processes of a compute that host no game session to end. A process that hosts one stays. A process that is not ready yet is
// asked when it is, because the server SDK has no callback for it before.
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

// LeaveHost removes a compute and ends everything left on it.
func (t *Tx) LeaveHost(fleetID, name string) {
	if r, ok := t.Fleets.Compute(fleetID, name); ok {
		t.removeCompute(r)
	}
}

// fleetSteps are the statuses of a fleet of a build on its way to ACTIVE. VALIDATING and BUILDING involve no work of their own: an agent validates
// the build while it downloads it.
var fleetSteps = []string{"NEW", "DOWNLOADING", "VALIDATING", "BUILDING", "ACTIVATING", "ACTIVE"}

// AdvanceFleet moves a fleet of a build towards ACTIVE: with its first host it becomes DOWNLOADING, with the first connected server process
// ACTIVATING, and with the first ready one ACTIVE. ACTIVE is permanent.
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

// HostReplaced records in the fleet's events that a disconnected host makes room for others. Source: docs/spec/events.md#fleet-events.
func (t *Tx) HostReplaced(fleetID, location, name string) {
	t.fleetEvent(fleetID, "INSTANCE_REPLACED_UNHEALTHY", fmt.Sprintf("Host %s of fleet %s in %s was replaced: its agent is not connected, and the fleet has as many hosts as it wants without it", name, fleetID, location))
}

// Scale sets the desired number of hosts in a location and records the reason in the fleet's events.
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

// CheckSite refuses a fleet that hosts cannot join, or a location that does not exist. Either may be empty. The region of a build is a location of the
// fleets that are to come: hosts may join it before the first one exists, and while one is replaced.
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
		for _, b := range t.Fleets.Builds.All() {
			if b.Region == location {
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

// AdmitHost makes a host a compute of the ANYWHERE fleet to which it is bound. If it is one already, AdmitHost updates its address.
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
