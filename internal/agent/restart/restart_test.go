package restart

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Unix(1_800_000_000, 0)

// middle removes the random spread.
func middle() float64 { return 0.5 }

func TestNormalEndIsReplacedAtOnce(t *testing.T) {
	e := New(Default(), middle)
	for i := range 100 {
		now := start.Add(time.Duration(i) * time.Second)
		if wait := e.Wait(0, now); wait != 0 {
			t.Fatalf("start %d: wait %v, want none", i, wait)
		}
		e.Started(0, now)
		if e.Ended(0, false, now) || e.Failed(now) {
			t.Fatalf("end %d: the entry failed, want not", i)
		}
	}
}

func TestCrashesDoubleTheDelayOfTheirSlot(t *testing.T) {
	policy := Default()
	policy.CrashesMax = 100
	e := New(policy, middle)
	now := start
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		e.Started(0, now)
		e.Ended(0, true, now)
		if got := e.Wait(0, now); got != want*time.Second {
			t.Fatalf("after crash %d: wait %v, want %v s", i+1, got, int(want))
		}
		if got := e.Wait(1, now); got != 0 {
			t.Fatalf("after crash %d in slot 0: slot 1 waits %v, want not", i+1, got)
		}
		now = now.Add(want * time.Second)
		if got := e.Wait(0, now); got != 0 {
			t.Fatalf("after the delay of crash %d: wait %v, want none", i+1, got)
		}
	}
	e.Started(0, now)
	e.Ended(0, false, now)
	e.Started(0, now)
	e.Ended(0, true, now)
	if got := e.Wait(0, now); got != time.Second {
		t.Errorf("first crash after a normal end: wait %v, want 1s", got)
	}
	now = now.Add(time.Second)
	e.Started(0, now)
	now = now.Add(policy.Window)
	e.Ended(0, true, now)
	if got := e.Wait(0, now); got != time.Second {
		t.Errorf("crash after a long life: wait %v, want 1s", got)
	}
}

func TestDelaysSpread(t *testing.T) {
	for chance, want := range map[float64]time.Duration{0: 750 * time.Millisecond, 0.5: time.Second, 1: 1250 * time.Millisecond} {
		e := New(Default(), func() float64 { return chance })
		e.Ended(0, true, start)
		if got := e.Wait(0, start); got != want {
			t.Errorf("chance %v: wait %v, want %v", chance, got, want)
		}
	}
}

// crash makes an entry fail: the sixth crash, each a second after the previous one.
func crash(t *testing.T, e *Entry) time.Time {
	t.Helper()
	now := start
	for i := range 6 {
		now = now.Add(time.Second)
		e.Started(i, now)
		if got, want := e.Ended(i, true, now), i == 5; got != want {
			t.Fatalf("crash %d: failed %v, want %v", i+1, got, want)
		}
	}
	return now
}

func TestTooManyCrashesFailTheEntry(t *testing.T) {
	e := New(Default(), middle)
	now := crash(t, e)
	for _, slot := range []int{0, 5, 6, 40} {
		if got := e.Wait(slot, now); got != 5*time.Minute {
			t.Errorf("slot %d: wait %v, want 5m", slot, got)
		}
	}
	if got := e.Recent(now); got != 6 {
		t.Errorf("%d crashes within the window, want 6", got)
	}
	if e.Ended(7, true, now) {
		t.Error("a crash of a failed entry reports the failure again")
	}

	now = now.Add(5 * time.Minute)
	if got := e.Wait(3, now); got != 0 {
		t.Fatalf("after 5 minutes: wait %v, want a probe", got)
	}
	e.Started(3, now)
	if got := e.Wait(4, now); got != 5*time.Minute {
		t.Errorf("slot 4 beside the probe: wait %v, want 5m", got)
	}
	e.Ended(3, true, now.Add(time.Second))
	if got := e.Wait(4, now.Add(time.Minute)); got != 4*time.Minute {
		t.Errorf("after the probe crashed: wait %v, want 4m", got)
	}
}

func TestProbeEndsTheFailure(t *testing.T) {
	for name, end := range map[string]func(*Entry, time.Time) time.Time{
		"ends normally": func(e *Entry, now time.Time) time.Time { e.Ended(0, false, now); return now },
		"lives":         func(e *Entry, now time.Time) time.Time { return now.Add(5 * time.Minute) },
		"reset":         func(e *Entry, now time.Time) time.Time { e.Reset(); return now },
	} {
		e := New(Default(), middle)
		now := crash(t, e).Add(5 * time.Minute)
		e.Started(0, now)
		now = end(e, now)
		if e.Failed(now) {
			t.Errorf("%s: still failed", name)
		}
		if got := e.Wait(9, now); got != 0 {
			t.Errorf("%s: wait %v, want none", name, got)
		}
		if e.Ended(0, true, now) {
			t.Errorf("%s: one crash fails the entry again, want six", name)
		}
	}
}

func TestOldCrashesDoNotCount(t *testing.T) {
	e := New(Default(), middle)
	now := start
	for i := range 50 {
		now = now.Add(2*time.Minute + time.Second) // five in ten minutes
		if e.Started(0, now); e.Ended(0, true, now) {
			t.Fatalf("crash %d: failed, want not", i+1)
		}
	}
}

// TestRules checks invariants on random histories.
func TestRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := Default()
		e := New(policy, func() float64 { return rapid.Float64Range(0, 0.999).Draw(t, "chance") })
		now, running := start, map[int]bool{}
		var crashes, starts []time.Time // while failed: starts
		var crashedAt [4]time.Time
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			slot := rapid.IntRange(0, 3).Draw(t, "slot")
			if wait := e.Wait(slot, now); wait < 0 || wait > 5*time.Minute {
				t.Fatalf("wait %v, want 0 to 5m", wait)
			}
			wasFailed := e.Failed(now)
			switch {
			case running[slot]:
				crashed := rapid.IntRange(0, 3).Draw(t, "end") > 0
				if failed := e.Ended(slot, crashed, now); failed {
					crashes = append(crashes, now)
					if wasFailed || now.Sub(crashes[max(0, len(crashes)-6)]) > policy.Window || len(crashes) < 6 {
						t.Fatalf("failed with crashes at %v", crashes)
					}
				} else if crashed {
					crashes = append(crashes, now)
				}
				if crashed {
					crashedAt[slot] = now
				} else {
					crashedAt[slot] = time.Time{}
				}
				running[slot] = false
			case e.Wait(slot, now) == 0:
				if !crashedAt[slot].IsZero() && now.Sub(crashedAt[slot]) < 750*time.Millisecond {
					t.Fatalf("slot %d: started %v after a crash", slot, now.Sub(crashedAt[slot]))
				}
				if wasFailed {
					if n := len(starts); n > 0 && now.Sub(starts[n-1]) < policy.Probe {
						t.Fatalf("two probes within %v", now.Sub(starts[n-1]))
					}
					starts = append(starts, now)
				} else {
					starts = nil
				}
				e.Started(slot, now)
				running[slot] = true
			}
		}
	})
}
