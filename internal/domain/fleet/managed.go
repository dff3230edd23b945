package fleet

import (
	"time"

	"github.com/musterhq/muster/internal/domain/wire"
)

// Managed has the fields of a fleet whose hosts run a build with agents. It is nil for an ANYWHERE fleet.
type Managed struct {
	Build                     string // its id; the build may have been deleted
	BuildRegion, BuildAccount string // of its ARN
	OperatingSystem           string // of the build
	InstanceType              string
	Spot                      bool
	LogPaths                  []string
	Role                      string
	RoleCredentials           string // how the hosts get the role's credentials
	Policies                  []ScalingPolicy
	Manifest                  string // of the build's files in the service's own store; empty: they are in an operator's store
}

// Home returns the location that a fleet of a build has from its creation: the region that its creator named. An ANYWHERE fleet has none.
func (f *Fleet) Home() string {
	if f.Managed == nil {
		return ""
	}
	return f.Region
}

// Capacity is the wanted number of hosts in a location of a managed fleet.
type Capacity struct {
	Desired, Min, Max int32
	FromZero          bool          // the last host is removed after a time without players, and returns with the next request for a game session
	Inactivity        time.Duration // how long that is, in whole minutes on the wire; 0 unless FromZero
}

// ScalingPolicy determines when a managed fleet gets more or fewer hosts.
type ScalingPolicy struct {
	Name        string
	Metric      string
	TargetBased bool
	Target      float64 // of a target-based policy; the fields below are those of a rule-based one

	Comparison     string
	Threshold      float64
	Periods        int32 // minutes for which the rule must hold
	AdjustmentType string
	Adjustment     int32
}

func (m *Managed) fields(c *wire.Codec) {
	c.String(1, &m.Build)
	c.Shared(2, &m.BuildRegion)
	c.Shared(3, &m.BuildAccount)
	c.Shared(4, &m.OperatingSystem)
	c.Shared(5, &m.InstanceType)
	c.Bool(6, &m.Spot)
	c.Strings(7, &m.LogPaths)
	c.String(8, &m.Role)
	c.Shared(9, &m.RoleCredentials)
	wire.Many(c, 10, &m.Policies, (*ScalingPolicy).fields)
	c.String(11, &m.Manifest)
}

func (x *Capacity) fields(c *wire.Codec) {
	wire.Int(c, 1, &x.Desired)
	wire.Int(c, 2, &x.Min)
	wire.Int(c, 3, &x.Max)
	c.Bool(4, &x.FromZero)
	c.Duration(5, &x.Inactivity, time.Minute)
}

func (p *ScalingPolicy) fields(c *wire.Codec) {
	c.String(1, &p.Name)
	c.Shared(2, &p.Metric)
	c.Bool(3, &p.TargetBased)
	c.Float64(4, &p.Target)
	c.Shared(5, &p.Comparison)
	c.Float64(6, &p.Threshold)
	wire.Int(c, 7, &p.Periods)
	c.Shared(8, &p.AdjustmentType)
	wire.Int(c, 9, &p.Adjustment)
}
