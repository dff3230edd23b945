// Package restart decides when a server process that has ended may be restarted. It is a deterministic state machine: the caller passes the time and
// the source of randomness to each call.
//
// A process that ends normally is replaced at once, because it is no fault if a game server serves one game and exits. A crash delays the replacement
// in the same slot, twice as long each time. An entry of the runtime configuration that crashes too often has failed. From then on it only gets an
// occasional probe, until a probe shows that the fault is gone.
package restart

import "time"

// Policy has the rules of restarts.
type Policy struct {
	// First is the delay after the first crash in a slot; each further one doubles it, up to Longest.
	First, Longest time.Duration
	// Spread is the fraction by which a delay varies in both directions, so that hosts that crashed together do not restart together.
	Spread float64
	// An entry with more than CrashesMax crashes within Window has failed.
	CrashesMax int
	Window     time.Duration
	// Probe is the interval between two starts of a failed entry. A process that runs this long shows that the entry works again.
	Probe time.Duration
}

// Default returns the policy in docs/guide/agent.md.
func Default() Policy {
	return Policy{First: time.Second, Longest: time.Minute, Spread: 0.25, CrashesMax: 5, Window: 10 * time.Minute, Probe: 5 * time.Minute}
}

// Entry records the history of the processes of one entry of the runtime configuration. Each process has a slot, counted from 0.
type Entry struct {
	policy Policy
	chance func() float64 // in [0, 1)

	slots   []slot
	crashes []time.Time // the latest, oldest first, no more than CrashesMax+1
	failed  bool
	probe   int       // slot of the probe that runs; -1: none
	probed  time.Time // when the latest probe began, or the entry failed
}

type slot struct {
	started  time.Time // zero: no process runs
	crashes  int       // consecutive
	earliest time.Time
}

// New returns the record of an entry that has not run anything yet. chance returns random numbers in [0, 1).
func New(policy Policy, chance func() float64) *Entry {
	return &Entry{policy: policy, chance: chance, probe: -1}
}

// Wait returns how long the slot must stay empty; 0 means that a process may be started now. While a probe runs, other slots of the entry wait
// until it has shown that the entry works.
func (e *Entry) Wait(index int, now time.Time) time.Duration {
	e.look(now)
	wait := max(0, e.at(index).earliest.Sub(now))
	if e.failed {
		wait = max(wait, e.probed.Add(e.policy.Probe).Sub(now))
	}
	return wait
}

// Started records that a process has been started in the slot.
func (e *Entry) Started(index int, now time.Time) {
	e.look(now)
	e.at(index).started = now
	if e.failed {
		e.probe, e.probed = index, now
	}
}

// Runs records that a process that was started earlier runs in the slot now. It is not a probe: it shows nothing about a failure since its start.
func (e *Entry) Runs(index int, started time.Time) { e.at(index).started = started }

// Ended records that the process in the slot ended, or could not be started, which counts as a crash. It reports whether the entry has failed because
// of it.
func (e *Entry) Ended(index int, crashed bool, now time.Time) (failed bool) {
	e.look(now)
	s := e.at(index)
	lived := time.Duration(0)
	if !s.started.IsZero() {
		lived = now.Sub(s.started)
	}
	s.started = time.Time{}
	wasProbe := e.probe == index
	if wasProbe {
		e.probe = -1
	}
	if !crashed {
		s.crashes, s.earliest = 0, time.Time{}
		if wasProbe {
			e.recover()
		}
		return false
	}
	if lived >= e.policy.Window { // it ran for a long time, so this crash does not continue a series
		s.crashes = 0
	}
	s.crashes++
	s.earliest = now.Add(e.delay(s.crashes))
	return e.count(now)
}

// Failed reports whether the entry has failed.
func (e *Entry) Failed(now time.Time) bool {
	e.look(now)
	return e.failed
}

// Recent returns how many crashes the entry has had within the window, as far as they count.
func (e *Entry) Recent(now time.Time) int {
	e.look(now)
	n := 0
	for _, at := range e.crashes {
		if now.Sub(at) <= e.policy.Window {
			n++
		}
	}
	return n
}

// Reset forgets all crashes, because an operator has declared that the cause is gone.
func (e *Entry) Reset() {
	e.recover()
	for i := range e.slots {
		e.slots[i].crashes, e.slots[i].earliest = 0, time.Time{}
	}
}

// at returns the slot, which exists from its first use.
func (e *Entry) at(index int) *slot {
	for len(e.slots) <= index {
		e.slots = append(e.slots, slot{})
	}
	return &e.slots[index]
}

// look clears the failure if the probe has lived long enough.
func (e *Entry) look(now time.Time) {
	if e.failed && e.probe >= 0 && now.Sub(e.probed) >= e.policy.Probe {
		e.recover()
	}
}

func (e *Entry) recover() {
	e.failed, e.probe, e.crashes = false, -1, nil
}

// count adds a crash and reports whether the entry has failed because of it.
func (e *Entry) count(now time.Time) bool {
	e.crashes = append(e.crashes, now)
	for len(e.crashes) > e.policy.CrashesMax+1 || now.Sub(e.crashes[0]) > e.policy.Window {
		e.crashes = e.crashes[1:]
	}
	if e.failed || len(e.crashes) <= e.policy.CrashesMax {
		return false
	}
	e.failed, e.probe, e.probed = true, -1, now
	return true
}

func (e *Entry) delay(crashes int) time.Duration {
	d := e.policy.First
	for i := 1; i < crashes && d < e.policy.Longest; i++ {
		d *= 2
	}
	d = min(d, e.policy.Longest)
	return time.Duration(float64(d) * (1 + e.policy.Spread*(2*e.chance()-1)))
}
