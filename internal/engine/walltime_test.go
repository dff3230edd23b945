package engine

import (
	"testing"
	"time"
)

// The time follows the clock forward, and never back: there it is a twentieth slower than what passes, until the clock has caught up.
func TestLater(t *testing.T) {
	clock := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	now := later(time.Time{}, 0, clock)
	if !now.Equal(clock) {
		t.Fatalf("it begins at %s", now)
	}
	step := func(d, set time.Duration) time.Duration {
		clock = clock.Add(d + set)
		before := now
		now = later(now, d, clock)
		return now.Sub(before)
	}
	for _, x := range []struct {
		what            string
		passes, set, is time.Duration
	}{
		{"at first", time.Minute, 0, time.Minute},
		{"set forward", time.Minute, time.Hour, time.Hour + time.Minute},
		{"then", time.Minute, 0, time.Minute},
		{"set back", time.Minute, -10 * time.Second, time.Minute - 3*time.Second},
		{"a minute on", time.Minute, 0, time.Minute - 3*time.Second},
		{"when it has caught up", 2 * time.Minute, 0, 2*time.Minute - 4*time.Second},
		{"at last", time.Minute, 0, time.Minute},
	} {
		if got := step(x.passes, x.set); got != x.is {
			t.Errorf("%s, %s became %s, want %s", x.what, x.passes, got, x.is)
		}
	}
	if !now.Equal(clock) {
		t.Errorf("it is %s, the clock %s", now, clock)
	}
}

func TestWallTimeGoesOnFromTheLastTransaction(t *testing.T) {
	ahead := time.Now().Add(time.Hour).Round(0)
	w := newWallTime(ahead)
	w.notBefore(ahead.Add(-time.Minute))
	first := w.now()
	if first.Before(ahead) || first.After(ahead.Add(time.Minute)) {
		t.Fatalf("it begins %s after the last transaction", first.Sub(ahead))
	}
	until := time.Now().Add(20 * time.Millisecond)
	for time.Now().Before(until) {
	}
	if w.now().Sub(first) < 10*time.Millisecond {
		t.Error("it stands still")
	}
	w.notBefore(ahead.Add(time.Hour))
	if w.now().Before(ahead.Add(time.Hour)) {
		t.Error("it is before a transaction")
	}
}
