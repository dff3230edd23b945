package fleet

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/wire"
)

// RolloutPhase is the phase of a rollout.
type RolloutPhase uint8

// The phases.
const (
	RolloutMoving    RolloutPhase = iota + 1 // it goes through its steps
	RolloutDone                              // the last step is over, and the old fleet drains
	RolloutUndone                            // the alias points to the old fleet again
	RolloutReturning                         // the alias returns to the old fleet as soon as that has a server process
)

func (p RolloutPhase) String() string {
	return [...]string{"", "MOVING", "DONE", "UNDONE", "RETURNING"}[p]
}

// Rollout moves the new game sessions of an alias from one fleet to another, in steps. An alias keeps its latest one.
//
// The alias points to the old fleet before the last step, which has weight 100, and to the new fleet from then on.
type Rollout struct {
	Alias    string
	No       uint32 // counts the rollouts of the alias
	From, To string // fleets
	By       string // the principal that started it
	Started  domain.Time

	Weights  []RolloutWeight // of the steps, in ascending order; the last one is 100
	StepTime time.Duration   // of each step, in whole seconds
	// A step ends the rollout if, since it began, at least Failures server processes or game sessions of the new fleet have failed, and these are
	// more than the given percentage of all.
	Failures       int32
	FailurePercent int32
	Keep           bool // the old fleet keeps its hosts

	Phase  RolloutPhase
	Step   int32              // index of Weights
	StepAt domain.Time        // when the step began
	StepBy domain.ContactTime // when it ends; 0: the rollout is not moving
	Ended  domain.Time        // when the rollout left the phase moving
	Why    string             // the reason for that, in words

	// Counted since the step began:
	Turns, TurnsNew            int64 // requests for game sessions by the alias, and how many of them go to the new fleet
	Processes, ProcessesFailed int64 // server processes of the new fleet that ran or have started, and those that ended with an error
	Sessions, SessionsFailed   int64 // its new game sessions, and those that never became active

	Drained []RolloutSite // the old fleet's capacity before it was drained

	Changed uint64
}

// RolloutWeight is the share of new game sessions that go to the new fleet.
type RolloutWeight struct{ Percent int32 }

// RolloutSite is the old fleet's capacity in a location before it was drained.
type RolloutSite struct {
	Location       string
	Desired        int32
	ScalingStopped bool
}

// rolloutLevel is the level that introduced rollouts.
const rolloutLevel = 2

// Level returns the level of the snapshot part.
func (*Rollout) Level() uint { return rolloutLevel }

func (r *Rollout) Fields(c *wire.Codec) {
	c.String(1, &r.Alias)
	wire.Int(c, 2, &r.No)
	c.String(3, &r.From)
	c.String(4, &r.To)
	c.String(5, &r.By)
	wire.Int(c, 6, &r.Started)
	wire.Many(c, 7, &r.Weights, func(x *RolloutWeight, c *wire.Codec) { wire.Int(c, 1, &x.Percent) })
	c.Duration(8, &r.StepTime, time.Second)
	wire.Int(c, 9, &r.Failures)
	wire.Int(c, 10, &r.FailurePercent)
	c.Bool(11, &r.Keep)
	wire.Int(c, 12, &r.Phase)
	wire.Int(c, 13, &r.Step)
	wire.Int(c, 14, &r.StepAt)
	wire.Int(c, 15, &r.StepBy)
	wire.Int(c, 16, &r.Ended)
	c.String(17, &r.Why)
	wire.Int(c, 18, &r.Turns)
	wire.Int(c, 19, &r.TurnsNew)
	wire.Int(c, 20, &r.Processes)
	wire.Int(c, 21, &r.ProcessesFailed)
	wire.Int(c, 22, &r.Sessions)
	wire.Int(c, 23, &r.SessionsFailed)
	wire.Many(c, 24, &r.Drained, (*RolloutSite).fields)
}

func (s *RolloutSite) fields(c *wire.Codec) {
	c.String(1, &s.Location)
	wire.Int(c, 2, &s.Desired)
	c.Bool(3, &s.ScalingStopped)
}

func rolloutPlace(r *Rollout) catalog.Place { return catalog.Place{ID: r.Alias} }

// Weight returns the current step's share in percent.
func (r *Rollout) Weight() int32 { return r.Weights[r.Step].Percent }

// Shares reports whether new game sessions of the alias go to both fleets.
func (r *Rollout) Shares() bool { return r.Phase == RolloutMoving && r.Weight() < 100 }

// Next reports whether the next turn is the new fleet's. Of n turns, the new fleet gets n*weight/100, rounded up. It gets the first one, so that each
// step tests the new build at once.
func (r *Rollout) Next() bool { return r.TurnsNew*100 < r.Turns*int64(r.Weight())+int64(r.Weight()) }

// Involves reports whether a fleet is the rollout's old or new one.
func (r *Rollout) Involves(fleetID string) bool { return r.From == fleetID || r.To == fleetID }

// TooManyFailures describes what has failed too often since the step began; "" if nothing has.
func (r *Rollout) TooManyFailures() string {
	beyond := func(failed, all int64) bool {
		return failed >= int64(r.Failures) && failed*100 > all*int64(r.FailurePercent)
	}
	switch {
	case beyond(r.ProcessesFailed, r.Processes):
		return "server processes"
	case beyond(r.SessionsFailed, r.Sessions):
		return "game sessions"
	}
	return ""
}

// Begin begins a step with zero counts, except that the running server processes count as started.
func (r *Rollout) Begin(step int32, now domain.Time, by domain.ContactTime, running int64) {
	r.Step, r.StepAt, r.StepBy = step, now, by
	r.Turns, r.TurnsNew, r.Processes, r.ProcessesFailed, r.Sessions, r.SessionsFailed = 0, 0, running, 0, 0, 0
}

// Drain sets the desired hosts of each location to the minimum and stops automatic scaling there. It returns the changed fleet and the previous
// capacities.
func (f *Fleet) Drain() (drained Fleet, had []RolloutSite) {
	drained = *f
	drained.Locations = slices.Clone(f.Locations)
	for i := range drained.Locations {
		l := &drained.Locations[i]
		had = append(had, RolloutSite{l.Name, l.Capacity.Desired, l.ScalingStopped})
		l.Capacity.Desired, l.ScalingStopped = l.Capacity.Min, true
	}
	return drained, had
}

// Undrain restores the previous capacities of the locations, except where they are higher by now.
func (f *Fleet) Undrain(had []RolloutSite) Fleet {
	filled := *f
	filled.Locations = slices.Clone(f.Locations)
	for i := range filled.Locations {
		l := &filled.Locations[i]
		for _, s := range had {
			if s.Location == l.Name {
				l.Capacity.Desired = min(max(l.Capacity.Desired, s.Desired), l.Capacity.Max)
				l.ScalingStopped = s.ScalingStopped
			}
		}
	}
	return filled
}
