package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
)

func advance(t *testing.T, h *house, d time.Duration) {
	t.Helper()
	if err := h.Advance(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// TestAdvance: one call passes every deadline in order, each at its own time, and all followers have received the events.
func TestAdvance(t *testing.T) {
	c := engine.NewClock(time.UnixMilli(1_700_000_000_000))
	h := newHouse(t, engine.Config{Clock: c})
	h.hall()
	game := h.game("g1", 4)
	for n := 1; n <= 3; n++ {
		if err := h.reserve(game, n); err != nil {
			t.Fatal(err)
		}
		advance(t, h, 10*time.Second)
	}
	var lock sync.Mutex
	var at []domain.Time
	end := h.Follow(kernel.Kinds(new(hosting.PlayerEnded)), func(x engine.Committed) {
		lock.Lock()
		defer lock.Unlock()
		at = append(at, x.At-1_700_000_000_000)
	})
	defer end()
	advance(t, h, 29*time.Second+999*time.Millisecond)
	if got := h.status(1); got != session.Reserved {
		t.Errorf("after 59.999 s it is %s", got)
	}
	advance(t, h, time.Hour)
	lock.Lock()
	defer lock.Unlock()
	if want := []domain.Time{60_000, 70_000, 80_000}; !slices.Equal(at, want) {
		t.Errorf("the reservations ended at %v, want %v", at, want)
	}
	if got, want := c.Now().UnixMilli(), int64(1_700_000_030_000+29_999+3_600_000); got != want {
		t.Errorf("the clock shows %d, want %d", got, want)
	}
}

// TestAdvanceStandsStill: only Advance moves the time, and a restart does not set it back.
func TestAdvanceStandsStill(t *testing.T) {
	start := time.UnixMilli(1_700_000_000_000)
	h := newHouse(t, engine.Config{Clock: engine.NewClock(start)})
	h.hall()
	game := h.game("g1", 4)
	if err := h.reserve(game, 1); err != nil {
		t.Fatal(err)
	}
	advance(t, h, 20*time.Second) // the rest is more than the least time of a seat after a start
	_ = h.close()
	h.config.Clock = engine.NewClock(start) // a new process without the old clock
	h.open()
	if got := h.Now().Sub(start); got != 20*time.Second {
		t.Errorf("after a restart the clock shows %s behind its start, want 20s", got)
	}
	advance(t, h, 39*time.Second)
	if got := h.status(1); got != session.Reserved {
		t.Errorf("after 59 s it is %s", got)
	}
	advance(t, h, time.Second)
	if got := h.status(1); got != session.TimedOut {
		t.Errorf("after 60 s it is %s", got)
	}
}

// TestAdvanceArchives: when Advance returns, records beyond their retention are gone.
func TestAdvanceArchives(t *testing.T) {
	h := newHouse(t, engine.Config{Clock: engine.NewClock(time.UnixMilli(1_700_000_000_000))})
	h.hall()
	game := h.game("g1", 4)
	if err := h.reserve(game, 1); err != nil {
		t.Fatal(err)
	}
	advance(t, h, time.Minute)
	advance(t, h, 29*24*time.Hour)
	if got := h.status(1); got != session.TimedOut {
		t.Errorf("after 29 days it is %s", got)
	}
	advance(t, h, 2*24*time.Hour)
	if _, err := h.PlayerSession(t.Context(), playerID(1)); !domain.IsRefused(err, domain.NotFound) {
		t.Errorf("after 31 days: %v", err)
	}
}

func TestAdvanceRefuses(t *testing.T) {
	h := newHouse(t, engine.Config{})
	if err := h.Advance(t.Context(), time.Second); !errors.Is(err, engine.ErrRealTime) {
		t.Errorf("on real time: %v", err)
	}
	h = newHouse(t, engine.Config{Clock: engine.NewClock(time.UnixMilli(1_700_000_000_000))})
	for _, d := range []time.Duration{-1, engine.AdvanceMax + 1} {
		if err := h.Advance(t.Context(), d); err == nil {
			t.Errorf("advance by %s is not refused", d)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Advance(ctx, time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
