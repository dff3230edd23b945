package capacity

import (
	"fmt"
	"math"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
)

// This file computes how many hosts a fleet wants in a location. It is a pure function of the fleet's policies, the samples of the last minutes, and
// when the policies last acted.

const (
	// SampleEvery is the interval between samples; policies count in minutes.
	SampleEvery = time.Minute
	// Pause is how long a policy waits after it acted: a rule-based one before any action, a target-based one before it removes hosts. Source: the
	// documented ten minutes between two scaling events of a policy.
	Pause = 10 * time.Minute
	// CalmPeriods is how many minutes a target-based policy must have wanted fewer hosts before it removes any.
	CalmPeriods = 15
	// PeriodsMax is the longest time in minutes for which a rule may have to hold.
	PeriodsMax = 240

	// late is the age from which a sample is too old to act on, and the gap that interrupts a series of samples.
	late = SampleEvery + SampleEvery/2
)

// Situation is the input of a fleet's policies for one location.
type Situation struct {
	Now      domain.Time
	Capacity fleet.Capacity
	Copies   int64 // server processes on each host
	Policies []fleet.ScalingPolicy
	Samples  []Sample                        // oldest first, one per minute; some may be missing
	Acted    func(policy string) domain.Time // when a policy last acted; 0: never, or long ago
	Most     int32                           // the most hosts that the fleet can have there now, including its current ones
}

// Change is a new desired number of hosts. Policy is empty if the location scales to or from zero.
type Change struct {
	To     int32
	Policy string
	Why    string
}

// fromZero is the name under which scaling to and from zero is recorded; no policy has it.
const fromZero = ""

// Scale returns the change to make now, if any. Policies act independently: if several want a change, the one that wants the most hosts wins, so that
// none removes hosts that another has just added.
func Scale(s *Situation) (best Change, ok bool) {
	fresh := row(s.Samples, s.Now)
	if len(fresh) == 0 {
		return best, false // without recent data every change would be a guess
	}
	consider := func(c Change, acts bool) {
		if acts && (!ok || c.To > best.To) {
			best, ok = c, true
		}
	}
	for i := range s.Policies {
		if p := &s.Policies[i]; p.TargetBased {
			consider(s.target(p, fresh))
		} else {
			consider(s.rule(p, fresh))
		}
	}
	if s.Capacity.FromZero {
		consider(s.zero(fresh))
	}
	return best, ok
}

// row returns the samples of the last minutes up to the first gap, oldest first; none if the newest is too old.
func row(all []Sample, now domain.Time) []Sample {
	for i := len(all) - 1; i >= 0; i-- {
		if now.Sub(all[i].At) > late {
			return all[i+1:]
		}
		now = all[i].At
	}
	return all
}

// to limits a desired number to the fleet's bounds, and an increase to the available hosts.
func (s *Situation) to(want float64, policy, why string) (Change, bool) {
	c, bound := s.Capacity, ""
	n := int32(max(float64(c.Min), min(want, float64(c.Max))))
	if n > c.Desired && n > s.Most {
		bound = fmt.Sprintf("; only %d hosts can serve it", s.Most)
		n = max(c.Desired, s.Most)
	}
	return Change{n, policy, why + bound}, n != c.Desired
}

func (s *Situation) paused(policy string) bool {
	at := s.Acted(policy)
	return at != 0 && s.Now.Sub(at) < Pause
}

// target keeps a percentage of server processes available. It computes the required number of hosts, so hosts that are still starting count, and it
// can add hosts at any time. It removes hosts once fewer would have been enough for CalmPeriods.
func (s *Situation) target(p *fleet.ScalingPolicy, fresh []Sample) (Change, bool) {
	last := &fresh[len(fresh)-1]
	now := s.enough(p.Target, last)
	share := "no server process is ready"
	if percent, ok := last.Metric("PercentAvailableGameSessions"); ok {
		share = fmt.Sprintf("%.0f %% of game sessions are available", percent)
	}
	why := fmt.Sprintf("policy %s: %s, and the target is %g %%", p.Name, share, p.Target)
	switch {
	case s.Capacity.Desired == 0:
		return Change{}, false // a percentage of nothing is undefined, and an operator who sets 0 intends it
	case now > float64(s.Capacity.Desired):
		return s.to(now, p.Name, why)
	}
	if len(fresh) < CalmPeriods || s.paused(p.Name) {
		return Change{}, false
	}
	for i := range CalmPeriods {
		x := &fresh[len(fresh)-CalmPeriods+i]
		if _, ok := x.Metric("PercentAvailableGameSessions"); !ok {
			return Change{}, false // nothing runs, so it is unknown whether fewer hosts suffice
		}
		now = max(now, s.enough(p.Target, x))
	}
	if now >= float64(s.Capacity.Desired) {
		return Change{}, false
	}
	return s.to(now, p.Name, fmt.Sprintf("%s; fewer hosts were enough for %d minutes", why, CalmPeriods))
}

// enough returns the number of hosts of which the target percentage of processes is available while as many are in use as in a sample. With a target
// above 0, it is at least one.
func (s *Situation) enough(target float64, x *Sample) float64 {
	used := float64(x.ActivatingGameSessions + x.ActiveGameSessions + x.UnhealthyProcesses)
	switch {
	case target >= 100 && used > 0:
		return math.MaxInt32
	case used == 0 && target == 0:
		return 0
	case used == 0:
		return 1
	}
	return math.Ceil(used / (1 - target/100) / float64(max(s.Copies, 1)))
}

// rule acts when its metric has been beyond the threshold for the required minutes.
func (s *Situation) rule(p *fleet.ScalingPolicy, fresh []Sample) (Change, bool) {
	periods := int(max(p.Periods, 1))
	if len(fresh) < periods || s.paused(p.Name) {
		return Change{}, false
	}
	value := 0.0
	for i := range periods {
		var ok bool
		if value, ok = fresh[len(fresh)-periods+i].Metric(p.Metric); !ok || !holds(value, p.Comparison, p.Threshold) {
			return Change{}, false
		}
	}
	desired := float64(s.Capacity.Desired)
	want := float64(p.Adjustment)
	switch p.AdjustmentType {
	case "ChangeInCapacity":
		want += desired
	case "PercentChangeInCapacity":
		want = desired + wholeHosts(desired*want/100)
	}
	return s.to(want, p.Name, fmt.Sprintf("policy %s: %s has been %s %g for %d minutes, now %g", p.Name, p.Metric, inWords[p.Comparison], p.Threshold, periods, value))
}

var inWords = map[string]string{
	"GreaterThanThreshold": "above", "GreaterThanOrEqualToThreshold": "at least", "LessThanThreshold": "below", "LessThanOrEqualToThreshold": "at most",
}

func holds(value float64, comparison string, threshold float64) bool {
	switch comparison {
	case "GreaterThanThreshold":
		return value > threshold
	case "GreaterThanOrEqualToThreshold":
		return value >= threshold
	case "LessThanThreshold":
		return value < threshold
	case "LessThanOrEqualToThreshold":
		return value <= threshold
	}
	return false
}

// wholeHosts rounds a change towards zero, but to at least one host, so that a small fleet changes at all.
func wholeHosts(x float64) float64 {
	switch {
	case x > 0:
		return max(1, math.Floor(x))
	case x < 0:
		return min(-1, math.Ceil(x))
	}
	return 0
}

// zero removes the last hosts of a location that scales to and from zero after the inactivity time without a game session. It brings one back when a
// placement waits for it.
func (s *Situation) zero(fresh []Sample) (Change, bool) {
	last := &fresh[len(fresh)-1]
	if s.Capacity.Desired == 0 {
		if last.QueueDepth == 0 {
			return Change{}, false
		}
		return s.to(1, fromZero, fmt.Sprintf("%d placements wait", last.QueueDepth))
	}
	minutes := int(s.Capacity.Inactivity / SampleEvery)
	if len(fresh) < minutes || s.paused(fromZero) {
		return Change{}, false
	}
	for _, x := range fresh[len(fresh)-minutes:] {
		if x.ActivatingGameSessions+x.ActiveGameSessions+x.QueueDepth > 0 {
			return Change{}, false
		}
	}
	return s.to(0, fromZero, fmt.Sprintf("no game session for %d minutes", minutes))
}
