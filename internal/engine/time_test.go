package engine_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/waittest"
)

// clock is a clock that the test sets.
type clock struct{ now atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.now.Store(1_700_000_000_000)
	return c
}

func (c *clock) time() time.Time { return time.UnixMilli(c.now.Load()) }

func (c *clock) add(d time.Duration) { c.now.Add(d.Milliseconds()) }

func (h *house) status(n int) session.PlayerStatus {
	h.t.Helper()
	p, err := h.PlayerSession(h.t.Context(), playerID(n))
	if err != nil {
		h.t.Fatal(err)
	}
	return p.Status
}

// sync waits until the engine has read the clock, which it does after every command.
func (h *house) sync() {
	h.t.Helper()
	for range 2 {
		if err := h.Do(h.t.Context(), &hosting.DeleteLocation{Name: "none"}); !domain.IsRefused(err, domain.NotFound) {
			h.t.Fatal(err)
		}
	}
}

// TestDeadlines: deadlines end on time by themselves, and a restart moves contact deadlines by the downtime.
func TestDeadlines(t *testing.T) {
	c := newClock()
	h := newHouse(t, engine.Config{Now: c.time})
	h.hall()
	game := h.game("g1", 4)
	if err := h.reserve(game, 1); err != nil {
		t.Fatal(err)
	}
	c.add(59 * time.Second)
	h.Poke()
	h.sync()
	if got := h.status(1); got != session.Reserved {
		t.Errorf("after 59 s it is %s", got)
	}
	c.add(time.Second)
	h.Poke()
	waittest.Until(t, "the end of the reservation", func() bool { return h.status(1) == session.TimedOut })

	if err := h.reserve(game, 2); err != nil {
		t.Fatal(err)
	}
	_ = h.close()
	c.add(3 * time.Hour)
	h.open()
	h.Poke()
	c.add(59 * time.Second)
	h.Poke()
	h.sync()
	if got := h.status(2); got != session.Reserved {
		t.Errorf("59 s after a restart it is %s", got)
	}
	c.add(2 * time.Second)
	h.Poke()
	waittest.Until(t, "the end of the reservation", func() bool { return h.status(2) == session.TimedOut })
}

// TestPauses: a pause of the process does not count for deadlines that wait for it. Shorter pauses count.
func TestPauses(t *testing.T) {
	c := newClock()
	config := engine.Config{Now: c.time}
	config.NoticePauses()
	h := newHouse(t, config)
	h.hall()
	game := h.game("g1", 4)
	if err := h.reserve(game, 1); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.add(4 * time.Minute)
		h.Poke()
		h.sync()
		if got := h.status(1); got != session.Reserved {
			t.Fatalf("after a pause it is %s", got)
		}
	}
	for range 15 { // of 4 s
		if got := h.status(1); got != session.Reserved {
			t.Errorf("within a minute it is %s", got)
		}
		c.add(4 * time.Second)
		h.Poke()
		h.sync()
	}
	waittest.Until(t, "the end of the reservation", func() bool { return h.status(1) == session.TimedOut })
}

// TestSignsOfLife: while a contact deadline is set, the journal gets an entry every second, which bounds the error of the measured downtime.
func TestSignsOfLife(t *testing.T) {
	c := newClock()
	h := newHouse(t, engine.Config{Now: c.time})
	h.hall()
	game := h.game("g1", 4)
	if err := h.reserve(game, 1); err != nil {
		t.Fatal(err)
	}
	before := h.gate.appended.Load()
	for i := range 20 {
		c.add(time.Second)
		h.Poke()
		waittest.Until(t, "a sign of life", func() bool { return h.gate.appended.Load() == before+int64(i)+1 })
	}
}
