package capacity

import (
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// AssignmentOf returns the assignment of a host.
func (c *State) AssignmentOf(host string) (Assignment, bool) {
	r, ok := c.assignments.Find(host)
	if !ok {
		return Assignment{}, false
	}
	return *c.assignments.Get(r), true
}

// View reads the room's state. It returns copies.
type View struct {
	kernel.Reader
	c *State
}

// View returns a View. It is valid until the next command is executed.
func (c *State) View() View { return View{c.Reader(), c} }

// AssignmentOf returns the assignment of a host: which fleet it serves, and under which name.
func (v *View) AssignmentOf(host string) (Assignment, bool) {
	a, ok := v.c.AssignmentOf(host)
	return a, v.Found(ok, a.Changed)
}

// Assignments returns the hosts of a fleet, oldest first. A location other than "" selects only its hosts.
func (v *View) Assignments(fleetID, location string) []Assignment {
	v.SawAll()
	return v.c.assignments.Page(catalog.Place{}, v.c.assignments.Len(), func(a *Assignment) bool {
		return a.Fleet == fleetID && (location == "" || a.Location == location)
	})
}

// Shortage tells why a fleet has fewer hosts in a location than it wants. It reports false if it has enough, or will have within a second.
func (v *View) Shortage(fleetID, location string) (Shortage, bool) {
	v.SawAll()
	at := v.c.sites()[location]
	if at == nil {
		return v.c.noHost(fleetID, location)
	}
	plan := v.c.planAt(at)
	return plan.Shortage(fleetID)
}

func (c *State) noHost(fleetID, location string) (Shortage, bool) {
	if f, ok := c.fleets.ManagedFleet(fleetID); ok {
		for _, l := range f.Locations {
			if l.Name == location && l.Capacity.Desired > 0 {
				return Shortage{fleetID, l.Capacity.Desired, 0, "no host has joined the location"}, true
			}
		}
	}
	return Shortage{}, false
}

// CapacityCounts counts the records of the room.
func (v *View) CapacityCounts() []kernel.RecordCount {
	return []kernel.RecordCount{{Kind: "host_assignments", Count: v.c.assignments.Len()}}
}
