package hosting

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// inactivityDefault is how long a location has no players before its last host is removed, unless the request sets another time. Source:
// the table of timers in the service's quotas.
const inactivityDefault = 30 * time.Minute

// SetCapacity sets the number of hosts in a location of a managed fleet. It changes the given fields and keeps the others.
type SetCapacity struct {
	Fleet             string
	Location          string // empty: the home location
	Desired, Min, Max *int32
	FromZero          *bool
	Inactivity        *time.Duration

	// Result: Location, never empty
	Stored   fleet.Fleet
	Capacity fleet.Capacity
}

func (cmd *SetCapacity) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	old, err := t.managedFleet(cmd.Fleet, "capacity is")
	if err != nil {
		return err
	}
	at, err := fleetLocation(old, cmd.Location)
	if err != nil {
		return err
	}
	was := old.Locations[at].Capacity
	c := was
	kernel.Patch(&c.Desired, cmd.Desired)
	kernel.Patch(&c.Min, cmd.Min)
	kernel.Patch(&c.Max, cmd.Max)
	kernel.Patch(&c.FromZero, cmd.FromZero)
	kernel.Patch(&c.Inactivity, cmd.Inactivity)
	if c.FromZero {
		c.Min = 0 // an earlier minimum would keep the last hosts
	}
	switch {
	case c.FromZero && cmd.Min != nil:
		return domain.Refuse(domain.Invalid, "MinSize: not with the strategy SCALE_TO_AND_FROM_ZERO, which sets it by itself")
	case c.Min > c.Max:
		return domain.Refuse(domain.Invalid, "MinSize: %d is more than MaxSize, %d", c.Min, c.Max)
	case c.Desired < c.Min || c.Desired > c.Max:
		return domain.Refuse(domain.Invalid, "DesiredInstances: %d is not between MinSize, %d, and MaxSize, %d", c.Desired, c.Min, c.Max)
	case !c.FromZero && cmd.Inactivity != nil:
		return domain.Refuse(domain.Invalid, "ManagedCapacityConfiguration.ScaleInAfterInactivityMinutes: only with the strategy SCALE_TO_AND_FROM_ZERO")
	case c.FromZero:
		c.Inactivity = cmp.Or(c.Inactivity, inactivityDefault)
	default:
		c.Inactivity = 0
	}
	f := changedAt(old, at, func(l *fleet.FleetLocation) { l.Capacity = c })
	cmd.Location, cmd.Capacity, cmd.Stored = f.Locations[at].Name, c, f
	t.Emit(&FleetChanged{f})
	if c.Desired != was.Desired || c.Min != was.Min || c.Max != was.Max {
		t.fleetEvent(f.ID, "FLEET_SCALING_EVENT",
			fmt.Sprintf("Capacity of fleet %s in %s: desired %d, minimum %d, maximum %d", f.ID, cmd.Location, c.Desired, c.Min, c.Max))
	}
	return nil
}

// fleetLocation returns the index of a location in a fleet's list; an empty name means the home location.
func fleetLocation(f *fleet.Fleet, name string) (int, error) {
	name = cmp.Or(name, f.Home())
	at := slices.IndexFunc(f.Locations, func(l fleet.FleetLocation) bool { return l.Name == name })
	if at < 0 {
		return 0, domain.Refuse(domain.NotFound, "fleet %s has no location %s", f.ID, name)
	}
	return at, nil
}

// changedAt returns a copy of a fleet with one location changed.
func changedAt(old *fleet.Fleet, at int, change func(*fleet.FleetLocation)) fleet.Fleet {
	f := *old
	f.Locations = slices.Clone(f.Locations)
	change(&f.Locations[at])
	return f
}

// SwitchScaling suspends automatic scaling at a location of a managed fleet, or resumes it.
type SwitchScaling struct {
	Fleet    string
	Location string // empty: the home location
	Stop     bool

	// Result
	Stored fleet.Fleet
}

func (cmd *SwitchScaling) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	old, err := t.managedFleet(cmd.Fleet, "AUTO_SCALING is")
	if err != nil {
		return err
	}
	at, err := fleetLocation(old, cmd.Location)
	if err != nil {
		return err
	}
	cmd.Stored = *old
	if old.Locations[at].ScalingStopped == cmd.Stop {
		return nil // documented: no effect
	}
	cmd.Stored = changedAt(old, at, func(l *fleet.FleetLocation) { l.ScalingStopped = cmd.Stop })
	t.Emit(&FleetChanged{cmd.Stored})
	return nil
}

// PutScalingPolicy adds a scaling policy to a managed fleet, or replaces the policy of the same name.
type PutScalingPolicy struct {
	Fleet  string
	Policy fleet.ScalingPolicy
}

func (cmd *PutScalingPolicy) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	old, err := t.managedFleet(cmd.Fleet, "scaling policies are")
	if err != nil {
		return err
	}
	all := slices.Clone(old.Managed.Policies)
	if at := policyNamed(all, cmd.Policy.Name); at >= 0 {
		all[at] = cmd.Policy
	} else if n, most := len(all), t.Config.ScalingPoliciesMax; n >= most {
		return domain.Refuse(domain.Invalid, "fleet %s has %d scaling policies; the limit is %d", old.ID, n, most) // the API declares no limit here
	} else {
		all = append(all, cmd.Policy)
	}
	t.storePolicies(old, all)
	return nil
}

func policyNamed(all []fleet.ScalingPolicy, name string) int {
	return slices.IndexFunc(all, func(p fleet.ScalingPolicy) bool { return p.Name == name })
}

func (t *Tx) storePolicies(old *fleet.Fleet, all []fleet.ScalingPolicy) {
	f, m := *old, *old.Managed
	m.Policies = all
	f.Managed = &m
	t.Emit(&FleetChanged{f})
}

type DeleteScalingPolicy struct{ Fleet, Name string }

func (cmd *DeleteScalingPolicy) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	_, old, err := t.fleetByID(cmd.Fleet)
	if err != nil {
		return err
	}
	at := -1
	if old.Managed != nil {
		at = policyNamed(old.Managed.Policies, cmd.Name)
	}
	if at < 0 {
		return domain.Refuse(domain.NotFound, "fleet %s has no scaling policy %q", cmd.Fleet, cmd.Name)
	}
	t.storePolicies(old, slices.Delete(slices.Clone(old.Managed.Policies), at, at+1))
	return nil
}
