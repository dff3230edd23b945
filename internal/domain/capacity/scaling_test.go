package capacity

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
)

const begin = domain.Time(1_700_000_000_000)

// minute returns the time of the n-th sample.
func minute(n int) domain.Time { return begin.Add(time.Duration(n) * SampleEvery) }

// each makes one sample for each minute from 0.
func each(n int, x Sample) (all []Sample) {
	for i := range n {
		x.At = minute(i)
		all = append(all, x)
	}
	return all
}

func without(all []Sample, at int) []Sample {
	return append(append([]Sample{}, all[:at]...), all[at+1:]...)
}

var never = func(string) domain.Time { return 0 }

func target(percent float64) fleet.ScalingPolicy {
	return fleet.ScalingPolicy{Name: "keep", Metric: "PercentAvailableGameSessions", TargetBased: true, Target: percent}
}

func rule(metric, comparison string, threshold float64, periods int32, kind string, by int32) fleet.ScalingPolicy {
	return fleet.ScalingPolicy{Name: metric, Metric: metric, Comparison: comparison + "Threshold", Threshold: threshold, Periods: periods, AdjustmentType: kind, Adjustment: by}
}

func TestScale(t *testing.T) {
	busy := Sample{ActiveInstances: 2, ActiveGameSessions: 18, AvailableGameSessions: 2}
	idle := Sample{ActiveInstances: 4, IdleInstances: 4, AvailableGameSessions: 40}
	dark := Sample{}
	two, four := fleet.Capacity{Desired: 2, Max: 10}, fleet.Capacity{Desired: 4, Min: 1, Max: 10}
	zero := fleet.Capacity{Max: 10}
	fromZero := func(desired int32) fleet.Capacity {
		return fleet.Capacity{Desired: desired, Max: 10, FromZero: true, Inactivity: 5 * time.Minute}
	}
	p := func(all ...fleet.ScalingPolicy) []fleet.ScalingPolicy { return all }
	for _, c := range []struct {
		name     string
		capacity fleet.Capacity
		policies []fleet.ScalingPolicy
		samples  []Sample
		acted    time.Duration // ago; 0: never
		most     int32
		want     int32 // -1: no change
		why      string
	}{
		{"target: 18 in use, 20 %% free: 22.5 of 10 each", two, p(target(20)), each(1, busy), 0, 10, 3, "10 % of game sessions are available, and the target is 20 %"},
		{"target: hosts that are starting count", fleet.Capacity{Desired: 3, Max: 10}, p(target(20)), each(1, busy), 0, 10, -1, ""},
		{"target: more hosts at once, also after it has just acted", two, p(target(20)), each(1, busy), time.Minute, 10, 3, ""},
		{"target: bounded by the maximum", fleet.Capacity{Desired: 2, Max: 2}, p(target(20)), each(1, busy), 0, 10, -1, ""},
		{"target: bounded by the hosts that there are", two, p(target(60)), each(1, busy), 0, 4, 4, "only 4 hosts can serve it"},
		{"target: no host is left", two, p(target(60)), each(1, busy), 0, 2, -1, ""},
		{"target: fewer hosts there than wanted by hand", two, p(target(60)), each(1, busy), 0, 1, -1, ""},
		{"target: fewer hosts after long", four, p(target(20)), each(CalmPeriods, idle), 0, 10, 1, "fewer hosts were enough for 15 minutes"},
		{"target: not after less", four, p(target(20)), each(CalmPeriods-1, idle), 0, 10, -1, ""},
		{"target: not while it pauses", four, p(target(20)), each(30, idle), Pause - time.Second, 10, -1, ""},
		{"target: after the pause", four, p(target(20)), each(30, idle), Pause, 10, 1, ""},
		{"target: the busiest minute counts", four, p(target(20)), append([]Sample{{At: minute(0), ActiveInstances: 4, ActiveGameSessions: 20, AvailableGameSessions: 20}}, each(CalmPeriods, idle)[1:]...), 0, 10, 3, ""},
		{"target: a gap in the samples", four, p(target(20)), without(each(CalmPeriods+1, idle), 5), 0, 10, -1, ""},
		{"target: nothing runs, so nothing is known", four, p(target(20)), each(30, dark), 0, 10, -1, ""},
		{"target: none by hand stays none", zero, p(target(20)), each(30, dark), 0, 10, -1, ""},
		{"target: all available cannot be", two, p(target(100)), each(1, busy), 0, 10, 10, ""},
		{"target: all available while nothing is in use", four, p(target(100)), each(CalmPeriods, idle), 0, 10, 1, ""},
		{"target 0 with nothing in use", fleet.Capacity{Desired: 4, Max: 10}, p(target(0)), each(CalmPeriods, idle), 0, 10, 0, ""},
		{"no policy", two, nil, each(30, busy), 0, 10, -1, ""},
		{"no sample", two, p(target(20)), nil, 0, 10, -1, ""},
		{"rule: held for its periods", two, p(rule("AvailableGameSessions", "LessThan", 3, 3, "ChangeInCapacity", 2)), each(3, busy), 0, 10, 4, "AvailableGameSessions has been below 3 for 3 minutes, now 2"},
		{"rule: held for less", two, p(rule("AvailableGameSessions", "LessThan", 3, 3, "ChangeInCapacity", 2)), each(2, busy), 0, 10, -1, ""},
		{"rule: one minute it did not hold", two, p(rule("AvailableGameSessions", "LessThan", 3, 3, "ChangeInCapacity", 2)), append(each(2, idle)[:1:1], each(3, busy)[1:]...), 0, 10, -1, ""},
		{"rule: a gap", two, p(rule("AvailableGameSessions", "LessThan", 3, 3, "ChangeInCapacity", 2)), without(each(4, busy), 2), 0, 10, -1, ""},
		{"rule: pauses for ten minutes", two, p(rule("AvailableGameSessions", "LessThan", 3, 1, "ChangeInCapacity", 2)), each(3, busy), Pause - time.Second, 10, -1, ""},
		{"rule: at most", two, p(rule("AvailableGameSessions", "LessThanOrEqualTo", 2, 1, "ChangeInCapacity", 1)), each(1, busy), 0, 10, 3, "at most 2"},
		{"rule: below is not at most", two, p(rule("AvailableGameSessions", "LessThan", 2, 1, "ChangeInCapacity", 1)), each(1, busy), 0, 10, -1, ""},
		{"rule: at least", two, p(rule("ActiveGameSessions", "GreaterThanOrEqualTo", 18, 1, "ChangeInCapacity", 1)), each(1, busy), 0, 10, 3, ""},
		{"rule: above is not at least", two, p(rule("ActiveGameSessions", "GreaterThan", 18, 1, "ChangeInCapacity", 1)), each(1, busy), 0, 10, -1, ""},
		{"rule: fewer, bounded by the minimum", four, p(rule("IdleInstances", "GreaterThan", 1, 1, "ChangeInCapacity", -9)), each(1, idle), 0, 10, 1, ""},
		{"rule: an exact number", two, p(rule("ActiveGameSessions", "GreaterThan", 1, 1, "ExactCapacity", 7)), each(1, busy), 0, 10, 7, ""},
		{"rule: a share, at least one host", two, p(rule("ActiveGameSessions", "GreaterThan", 1, 1, "PercentChangeInCapacity", 10)), each(1, busy), 0, 10, 3, ""},
		{"rule: a share, rounded down", four, p(rule("IdleInstances", "GreaterThan", 1, 1, "PercentChangeInCapacity", 40)), each(1, idle), 0, 10, 5, ""},
		{"rule: a share less, at least one host", four, p(rule("IdleInstances", "GreaterThan", 1, 1, "PercentChangeInCapacity", -10)), each(1, idle), 0, 10, 3, ""},
		{"rule: a share of nothing", zero, p(rule("ActiveGameSessions", "LessThan", 1, 1, "PercentChangeInCapacity", 50)), each(1, dark), 0, 10, -1, ""},
		{"rule: no share without instances", two, p(rule("PercentIdleInstances", "LessThan", 50, 1, "ChangeInCapacity", 1)), each(1, dark), 0, 10, -1, ""},
		{"rule: from zero by the queue", zero, p(rule("QueueDepth", "GreaterThan", 0, 1, "ChangeInCapacity", 1)), each(1, Sample{QueueDepth: 3}), 0, 10, 1, ""},
		{"rule: seconds in the queue", two, p(rule("WaitTime", "GreaterThan", 5, 1, "ChangeInCapacity", 1)), each(1, Sample{QueueDepth: 3, WaitTime: 6}), 0, 10, 3, ""},
		{"rule: an unknown metric", two, p(rule("Mood", "LessThan", 50, 1, "ChangeInCapacity", 1)), each(1, busy), 0, 10, -1, ""},
		{"of several, the one that wants most", two, p(rule("ActiveGameSessions", "GreaterThan", 1, 1, "ChangeInCapacity", -1), target(20), rule("AvailableGameSessions", "LessThan", 3, 1, "ChangeInCapacity", 4)), each(1, busy), 0, 10, 6, "policy AvailableGameSessions"},
		{"from zero: a placement waits", fromZero(0), nil, each(1, Sample{QueueDepth: 2}), 0, 10, 1, "2 placements wait"},
		{"from zero: none waits", fromZero(0), p(target(20)), each(9, dark), 0, 10, -1, ""},
		{"to zero: after the time of inactivity", fromZero(2), nil, each(5, idle), 0, 10, 0, "no game session for 5 minutes"},
		{"to zero: not before", fromZero(2), nil, each(4, idle), 0, 10, -1, ""},
		{"to zero: not with a game session", fromZero(2), nil, append([]Sample{{At: minute(0), ActiveGameSessions: 1}}, each(5, idle)[1:]...), 0, 10, -1, ""},
		{"to zero: not just after it came from there", fromZero(1), nil, each(5, idle), time.Minute, 10, -1, ""},
	} {
		s := Situation{Capacity: c.capacity, Copies: 10, Policies: c.policies, Samples: c.samples, Most: c.most, Acted: never}
		if n := len(c.samples); n > 0 {
			s.Now = c.samples[n-1].At.Add(time.Second)
		}
		if c.acted != 0 {
			s.Acted = func(string) domain.Time { return s.Now.Add(-c.acted) }
		}
		got, ok := Scale(&s)
		if ok != (c.want >= 0) || ok && got.To != c.want || !strings.Contains(got.Why, c.why) {
			t.Errorf("%s: got %+v, %t; want %d and %q", c.name, got, ok, c.want, c.why)
		}
	}
}

func TestOldSamplesSayNothing(t *testing.T) {
	s := Situation{Capacity: fleet.Capacity{Desired: 1, Max: 9}, Copies: 1, Policies: []fleet.ScalingPolicy{target(50)}, Samples: each(3, Sample{ActiveGameSessions: 1, ActiveInstances: 1}), Most: 9, Acted: never}
	for _, after := range []time.Duration{0, 90 * time.Second} {
		s.Now = minute(2).Add(after)
		if _, ok := Scale(&s); !ok {
			t.Errorf("%s after the last sample nothing happens", after)
		}
	}
	s.Now = minute(2).Add(91 * time.Second)
	if got, ok := Scale(&s); ok {
		t.Errorf("on samples that are too old: %+v", got)
	}
}

// TestScalingDoesNotFlap: if the load rises and falls every few minutes, a target-based policy follows its peaks, and removes no hosts between them.
func TestScalingDoesNotFlap(t *testing.T) {
	for _, every := range []int{1, 2, 5, 7} {
		capacity, acted := fleet.Capacity{Desired: 1, Max: 20}, map[string]domain.Time{}
		var samples []Sample
		changes, down := 0, 0
		for i := range 600 {
			used := int32(10)
			if i/every%2 == 0 {
				used = 40
			}
			slots := capacity.Desired * 10
			samples = append(samples, Sample{At: minute(i), ActiveInstances: capacity.Desired, ActiveGameSessions: min(used, slots), AvailableGameSessions: max(0, slots-used)})
			s := Situation{Now: minute(i), Capacity: capacity, Copies: 10, Policies: []fleet.ScalingPolicy{target(20)}, Samples: samples, Most: 20, Acted: func(p string) domain.Time { return acted[p] }}
			if c, ok := Scale(&s); ok {
				if changes++; c.To < capacity.Desired {
					down++
				}
				capacity.Desired, acted[c.Policy] = c.To, s.Now
			}
		}
		if down != 0 || changes > 4 || capacity.Desired != 5 {
			t.Errorf("peaks every %d minutes: %d changes, %d of them down, and %d hosts at the end", every, changes, down, capacity.Desired)
		}
	}
}

// TestScalingFollowsLoad: hosts are added within minutes and removed slowly, and the target is met whenever the load has been steady.
func TestScalingFollowsLoad(t *testing.T) {
	capacity, acted := fleet.Capacity{Desired: 1, Min: 1, Max: 50}, map[string]domain.Time{}
	var samples []Sample
	for i, used := range append(repeat(30, 100), append(repeat(60, 5), repeat(40, 100)...)...) {
		slots := capacity.Desired * 10
		samples = append(samples, Sample{At: minute(i), ActiveInstances: capacity.Desired, ActiveGameSessions: min(used, slots), AvailableGameSessions: max(0, slots-used)})
		s := Situation{Now: minute(i), Capacity: capacity, Copies: 10, Policies: []fleet.ScalingPolicy{target(25)}, Samples: samples, Most: 50, Acted: func(p string) domain.Time { return acted[p] }}
		if c, ok := Scale(&s); ok {
			capacity.Desired, acted[c.Policy] = c.To, s.Now
		}
		if i == 29 && capacity.Desired != 14 || i == 89 && capacity.Desired != 1 {
			t.Errorf("minute %d with %d game sessions: %d hosts", i, used, capacity.Desired)
		}
	}
	if capacity.Desired != 14 {
		t.Errorf("at the end %d hosts, want 14", capacity.Desired)
	}
}

func repeat(n int, used int32) (all []int32) {
	for range n {
		all = append(all, used)
	}
	return all
}
