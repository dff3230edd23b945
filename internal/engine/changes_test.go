package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
)

// revisions returns the revisions of a player's changes, the latest first.
func (h *house) revisions(player string, limit int) (revs []uint64) {
	h.t.Helper()
	all, err := h.ChangesOf(h.t.Context(), player, limit)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, x := range all {
		revs = append(revs, x.Rev)
	}
	return revs
}

// TestChangesAreFoundWhereverTheyAre: the changes of weeks, recent ones in memory and others in the archive, are listed once each, the
// latest first, without those beyond the retention.
func TestChangesAreFoundWhereverTheyAre(t *testing.T) {
	settings := flow.DefaultConfig()
	config := cell.DefaultConfig()
	config.PlayerFlow.Flow = &settings
	clock := engine.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	h := newHouse(t, engine.Config{Cell: config, Clock: clock})
	id := func(n int) domain.UUID { return domain.UUID{0: 0xf1, 1: byte(n >> 8), 2: byte(n)} }
	h.must(&playerflow.Login{Player: "ann", LoginSessionID: flow.LoginSessionID(id(1)), Token: id(2)})
	by := playerflow.Caller{Player: "ann", LoginSessionID: flow.LoginSessionID(id(1))}
	made, rev := 10, uint64(0)
	change := func(n int) { // n changes at once
		for range n {
			made++
			rev++
			if rev%2 == 1 {
				h.must(&playerflow.CreateParty{Caller: by, ID: flow.PartyID(id(made))})
			} else {
				h.must(&playerflow.LeaveParty{Caller: by})
			}
		}
	}
	for range 40 {
		change(10)
		for range 3 { // heartbeats keep the login session
			h.must(&playerflow.PollEvents{Player: "ann", LoginSessionID: flow.LoginSessionID(id(1))})
			if err := h.Advance(t.Context(), 8*time.Hour); err != nil {
				t.Fatal(err)
			}
		}
	}
	change(5)
	h.reopen()
	want := func(last, n uint64) (revs []uint64) {
		for i := range n {
			revs = append(revs, last-i)
		}
		return revs
	}
	for _, c := range []struct {
		limit int
		want  []uint64
	}{{3, want(rev, 3)}, {5, want(rev, 5)}, {6, want(rev, 6)}, {15, want(rev, 15)}, {200, want(rev, 200)}, {1000, want(rev, 305)}} {
		if got := h.revisions("ann", c.limit); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("limit %d:\n got %v\nwant %v", c.limit, got, c.want)
		}
	}
	if got := h.revisions("nobody", 10); got != nil {
		t.Errorf("an unknown player has %v", got)
	}
}
