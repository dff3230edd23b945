package capacity

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Measure returns a sample of each location of a fleet of a build that can be scaled automatically, and the number of recent samples that its
// policies use. Only the leader calls it.
func (v *View) Measure(now domain.Time) (all []Measured) {
	v.SawAll()
	v.c.fleets.ManagedFleets(func(f *fleet.Fleet) bool {
		for _, l := range f.Locations {
			if n := remembered(f, &l); n > 0 && mayScale(f, &l) {
				all = append(all, Measured{f.ID, l.Name, v.c.fleets.Measure(f.ID, l.Name, now), n})
			}
		}
		return true
	})
	return all
}

// Measured is a sample of a location of a fleet.
type Measured struct {
	Fleet, Location string
	Sample          Sample
	Remember        int // samples
}

// mayScale reports whether automatic scaling may change a location's hosts.
func mayScale(f *fleet.Fleet, l *fleet.FleetLocation) bool {
	return f.Status == fleet.Active && l.Status == fleet.Active && !l.ScalingStopped
}

// remembered returns how many samples the policies of a location use; 0 if there are no policies.
func remembered(f *fleet.Fleet, l *fleet.FleetLocation) (n int) {
	for _, p := range f.Managed.Policies {
		if p.TargetBased {
			n = max(n, CalmPeriods)
		} else {
			n = max(n, 1, min(int(p.Periods), PeriodsMax))
		}
	}
	if l.Capacity.FromZero {
		n = max(n, 1, int(l.Capacity.Inactivity/SampleEvery))
	}
	return n
}

// ScaleFleet changes the desired number of hosts of a fleet in a location if its policies require that. The leader issues it every minute with the
// samples that it has taken.
type ScaleFleet struct {
	Fleet, Location string
	Samples         []Sample // oldest first

	// Result
	Changed bool
	Change  Change
}

// Decide evaluates the policies that are in force now.
func (cmd *ScaleFleet) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	f, ok := t.fleets.ManagedFleet(cmd.Fleet)
	if !ok || k.Level() < level {
		return nil // it was deleted meanwhile
	}
	at := slices.IndexFunc(f.Locations, func(l fleet.FleetLocation) bool { return l.Name == cmd.Location })
	if at < 0 || !mayScale(f, &f.Locations[at]) {
		return nil
	}
	s := Situation{
		Now: t.Now, Capacity: f.Locations[at].Capacity, Policies: f.Managed.Policies, Samples: cmd.Samples, Most: t.most(f, cmd.Location),
		Acted: func(policy string) domain.Time {
			if r, ok := t.scalings.Find(scalingID(cmd.Fleet, cmd.Location, policy)); ok {
				return t.scalings.Get(r).At
			}
			return 0
		},
	}
	if f.Runtime != nil {
		s.Copies = f.Runtime.Copies()
	}
	if cmd.Change, cmd.Changed = Scale(&s); cmd.Changed {
		t.Emit(&FleetScaled{Scaling{Fleet: cmd.Fleet, Location: cmd.Location, Policy: cmd.Change.Policy, At: t.Now}})
		t.fleets.Scale(cmd.Fleet, cmd.Location, cmd.Change.To, cmd.Change.Why)
	}
	return nil
}

// most returns how many hosts a fleet could have in a location now: its current hosts plus the suitable unassigned ones.
func (c *State) most(f *fleet.Fleet, location string) (n int32) {
	needs := NeedsOf(f.Runtime)
	c.pool.EachHost(func(h Host) bool {
		a, held := c.AssignmentOf(h.ID)
		switch {
		case h.Location != location || h.Standing == Drained:
		case held && a.Fleet == f.ID:
			n++
		case !held && h.Standing == Ready && h.suits(f.ID, needs):
			n++
		}
		return true
	})
	return n
}

// suits reports whether a host may serve a fleet and meets its needs.
func (h *Host) suits(fleetID string, n Needs) bool {
	return (h.Fleet == "" || h.Fleet == fleetID) && h.Ports >= n.Ports && (h.MemoryMB == 0 || h.MemoryMB >= n.MemoryMB)
}
