package capacity

import (
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Plan moves hosts between fleets until each has as many as it wants, as far as that is possible now. The leader issues it every second; usually it
// changes nothing. It is never refused.
type Plan struct{}

// Decide plans every location.
func (*Plan) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if k.Level() < level {
		return nil // a node of the previous release could not follow
	}
	t.endLost()
	t.forgetScalings()
	sites := t.sites()
	for _, at := range slices.Sorted(maps.Keys(sites)) {
		for _, m := range t.planAt(sites[at]).Moves {
			t.do(m, at)
		}
	}
	for _, a := range t.all() {
		if a.Releasing {
			t.leave(&a)
		}
		t.fleets.AdvanceFleet(a.Fleet)
	}
	return nil
}

// all copies the assignments, oldest first.
func (c *State) all() []Assignment {
	return c.assignments.Page(catalog.Place{}, c.assignments.Len(), nil)
}

// endLost ends assignments whose host, fleet, location or compute is gone.
func (t *Tx) endLost() {
	if t.assignments.Len() == 0 {
		return
	}
	hosts := map[string]Host{}
	t.pool.EachHost(func(h Host) bool { hosts[h.ID] = h; return true })
	for _, a := range t.all() {
		h, there := hosts[a.Host]
		there = there && h.Location == a.Location && (h.Fleet == "" || h.Fleet == a.Fleet)
		_, joined := t.fleets.HostCompute(a.Fleet, a.Compute)
		switch {
		case there && joined:
			continue
		case joined:
			t.fleets.LeaveHost(a.Fleet, a.Compute)
		}
		t.Emit(&HostReleased{a.Host})
	}
}

// forgetScalings removes the records of policies that no longer exist or whose pause is long over.
func (t *Tx) forgetScalings() {
	var gone []string
	for _, s := range t.scalings.All() {
		f, ok := t.fleets.ManagedFleet(s.Fleet)
		if ok {
			_, ok = f.HasLocation(s.Location)
			ok = ok && (s.Policy == "" || slices.ContainsFunc(f.Managed.Policies, func(p fleet.ScalingPolicy) bool { return p.Name == s.Policy }))
		}
		if !ok || t.Now.Sub(s.At) > 2*Pause {
			gone = append(gone, scalingID(s.Fleet, s.Location, s.Policy))
		}
	}
	slices.Sort(gone) // map order must not reach the journal
	for _, id := range gone {
		t.Emit(&ScalingForgotten{id})
	}
}

// site is a location with the data that a plan needs.
type site struct {
	hosts   []Host
	demands []Demand
}

// sites returns the locations that have hosts, with the demands of the fleets there. A plan cannot change anything elsewhere. It reads each record
// once, because there may be thousands of fleets.
func (c *State) sites() map[string]*site {
	all := map[string]*site{}
	c.pool.EachHost(func(h Host) bool {
		at := all[h.Location]
		if at == nil {
			at = &site{}
			all[h.Location] = at
		}
		at.hosts = append(at.hosts, h)
		return true
	})
	if len(all) == 0 {
		return nil
	}
	type place struct{ fleet, location string }
	held := map[place][]Held{}
	c.assignments.Since(catalog.Place{}, func(a *Assignment) bool {
		h := Held{Host: a.Host, Releasing: a.Releasing}
		if x, ok := c.fleets.HostCompute(a.Fleet, a.Compute); ok {
			h.Sessions = x.Hosting
		}
		at := place{a.Fleet, a.Location}
		held[at] = append(held[at], h)
		return true
	})
	c.fleets.ManagedFleets(func(f *fleet.Fleet) bool {
		for i := range f.Locations {
			l := &f.Locations[i]
			if at := all[l.Name]; at != nil {
				at.demands = append(at.demands, demand(f, l, held[place{f.ID, l.Name}]))
			}
		}
		return true
	})
	return all
}

// planAt plans one location. It only reads.
func (c *State) planAt(at *site) Outcome {
	return Decide(at.hosts, at.demands, func(fleetID, name string) bool {
		_, taken := c.fleets.HostCompute(fleetID, name)
		return taken
	})
}

func demand(f *fleet.Fleet, l *fleet.FleetLocation, has []Held) Demand {
	d := Demand{Fleet: f.ID, Desired: l.Capacity.Desired, Min: l.Capacity.Min, Needs: NeedsOf(f.Runtime), Has: has}
	if f.Status == fleet.Deleting || l.Status == fleet.Deleting {
		d.Desired, d.Min = 0, 0
	}
	return d
}

// NeedsOf returns what a host must provide for a runtime configuration: a port for each "{port}" in the launch parameters of its processes.
func NeedsOf(r *fleet.Runtime) (n Needs) {
	if r == nil {
		return n
	}
	for _, l := range r.Launches {
		n.Ports += l.Copies * int32(strings.Count(l.Parameters, "{port}")+strings.Count(l.Parameters, "{port:"))
	}
	return n
}

func (t *Tx) do(m Move, location string) {
	if m.Step == Assign {
		host := m.Host
		a := Assignment{Host: host.ID, Fleet: m.Fleet, Location: location, Compute: host.Name, Since: t.Now}
		t.Emit(&HostAssigned{a})
		t.fleets.JoinHost(fleet.Compute{FleetID: a.Fleet, Name: a.Compute, Location: location, IPAddress: host.IP, DNSName: host.DNS, Holder: host.Holder})
		return
	}
	r, _ := t.assignments.Find(m.Host.ID)
	a := *t.assignments.Get(r)
	t.Emit(&HostReleasing{Host: m.Host.ID, Undone: m.Step == Reclaim})
	t.fleets.DrainHost(a.Fleet, a.Compute, m.Step == Release)
	if m.Replaced {
		t.fleets.HostReplaced(a.Fleet, a.Location, a.Compute)
	}
}

// leave continues the release of a host: it asks idle processes to end, and once none is left, removes the host from the fleet.
func (t *Tx) leave(a *Assignment) {
	t.fleets.DrainHost(a.Fleet, a.Compute, true) // an operator may have undone the drain
	if x, ok := t.fleets.HostCompute(a.Fleet, a.Compute); ok && x.Processes > 0 {
		t.fleets.EndIdle(a.Fleet, a.Compute)
		return
	}
	t.fleets.LeaveHost(a.Fleet, a.Compute)
	t.Emit(&HostReleased{a.Host})
}
