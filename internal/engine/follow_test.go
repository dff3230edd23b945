package engine_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/waittest"
)

// TestFollowersSeeEverythingInOrder: each follower, even a slow one, gets the kinds that it follows, in the order of the journal.
func TestFollowersSeeEverythingInOrder(t *testing.T) {
	h := newHouse(t, engine.Config{})
	h.hall()
	game := h.game("g1", 200)
	const callers, each = 20, 10
	slow := make(chan struct{})
	var seen [2][]domain.UUID
	var at [2]uint64
	var ends []func()
	var told [2]atomic.Int64
	for i := range seen {
		ends = append(ends, h.Follow(kernel.Kinds(new(hosting.PlayerReserved)), func(c engine.Committed) {
			if i == 1 {
				<-slow
			}
			if c.Number <= at[i] {
				t.Errorf("follower %d got entry %d after %d", i, c.Number, at[i])
			}
			at[i] = c.Number
			for _, e := range c.Events {
				seen[i] = append(seen[i], domain.UUID(e.Event.(*hosting.PlayerReserved).PlayerSession))
				told[i].Add(1)
			}
		}))
	}
	var others atomic.Int64
	end := h.Follow(kernel.Kinds(new(hosting.PlayerAccepted)), func(engine.Committed) { others.Add(1) })
	var work sync.WaitGroup
	for caller := range callers {
		work.Go(func() {
			for i := range each {
				if err := h.reserve(game, caller*each+i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait() // a follower that blocks delays no caller
	waittest.Until(t, "the quick follower", func() bool { return told[0].Load() == callers*each })
	if told[1].Load() != 0 {
		t.Error("the slow follower did not wait")
	}
	close(slow)
	for _, end := range ends {
		end() // waits for what was fed
	}
	end()
	if len(seen[0]) != callers*each || len(seen[1]) != callers*each || others.Load() != 0 {
		t.Fatalf("followers saw %d, %d and %d events, want %d, %d and 0", len(seen[0]), len(seen[1]), others.Load(), callers*each, callers*each)
	}
	for i := range seen[0] {
		if seen[0][i] != seen[1][i] {
			t.Fatalf("event %d differs between the followers", i)
		}
	}
	if err := h.reserve(h.game("g2", 4), 5000); err != nil {
		t.Fatal(err)
	}
	if len(seen[0]) != callers*each {
		t.Error("a follower that ended was called again")
	}
}

// TestFollowersHearNothingThatFailed: followers get only durable events.
func TestFollowersHearNothingThatFailed(t *testing.T) {
	h := newHouse(t, engine.Config{})
	h.hall()
	game := h.game("g1", 4)
	var told atomic.Int64
	end := h.Follow(kernel.Kinds(new(hosting.PlayerReserved)), func(c engine.Committed) { told.Add(int64(len(c.Events))) })
	if err := h.reserve(game, 1); err != nil {
		t.Fatal(err)
	}
	h.disk.FailNext(1)
	if err := h.reserve(game, 2); err == nil {
		t.Fatal("an append that failed was acknowledged")
	}
	_ = h.close()
	end()
	if told.Load() != 1 {
		t.Errorf("followers received %d reservations, want 1", told.Load())
	}
}
