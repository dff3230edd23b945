package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
)

// Placements that ended are found by their queue in memory and in the archive, the latest first and each once, also those of weeks ago.
func TestPlacementsUntil(t *testing.T) {
	clock := engine.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	h := newHouse(t, engine.Config{Clock: clock})
	for _, queue := range []string{"ranked", "other"} {
		h.must(&hosting.CreateQueue{Queue: placement.Queue{Name: queue, Timeout: time.Minute}})
	}
	var want []string
	for i := range 60 {
		id, queue := fmt.Sprintf("p%02d", i), "ranked"
		if i%3 == 0 {
			queue = "other"
		} else {
			want = append(want, id)
		}
		h.must(&hosting.StartPlacement{Placement: placement.Placement{ID: id, Queue: queue, PlayersMax: 2}})
		h.must(&hosting.StopPlacement{ID: id})
		if err := h.Advance(t.Context(), 7*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	h.must(&hosting.StartPlacement{Placement: placement.Placement{ID: "waits", Queue: "ranked", PlayersMax: 2}})
	h.must(&hosting.StartPlacement{Placement: placement.Placement{ID: "latest", Queue: "ranked", PlayersMax: 2}})
	h.must(&hosting.StopPlacement{ID: "latest"})
	want = append(want, "latest")
	slices.Reverse(want)
	h.reopen()
	var got []string
	until := domain.TimeOf(h.Now())
	for pages := 0; ; pages++ { // as a reader who goes back
		x, err := engine.PlacementsUntil(t.Context(), h.Engine, "ranked", until, 5)
		if err != nil || x.Skipped || pages > 100 {
			t.Fatalf("%v, %+v", err, x)
		}
		for _, p := range x.All {
			if p.End >= x.Since {
				got = append(got, p.ID)
			}
		}
		if until = x.Since - 1; x.Since == 0 {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	if x, err := engine.PlacementsUntil(t.Context(), h.Engine, "none", until, 5); err != nil || len(x.All) != 0 {
		t.Errorf("of an unknown queue: %v, %+v", err, x)
	}
}

// The members of a party are known after it has ended.
func TestPartyChangesUntil(t *testing.T) {
	settings, config := flow.DefaultConfig(), cell.DefaultConfig()
	config.PlayerFlow.Flow = &settings
	clock := engine.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	h := newHouse(t, engine.Config{Cell: config, Clock: clock})
	by := func(n byte) playerflow.Caller {
		return playerflow.Caller{Player: fmt.Sprintf("p%d", n), LoginSessionID: flow.LoginSessionID{0: 1, 15: n}}
	}
	for n := range byte(4) {
		h.must(&playerflow.Login{Player: by(n).Player, LoginSessionID: by(n).LoginSessionID, Token: domain.UUID{0: 2, 15: n}})
	}
	ours, theirs := flow.PartyID{0: 3}, flow.PartyID{0: 4}
	h.must(&playerflow.CreateParty{Caller: by(0), ID: ours, Joinability: flow.Open})
	h.must(&playerflow.CreateParty{Caller: by(2), ID: theirs, Joinability: flow.Open})
	h.must(&playerflow.JoinParty{Caller: by(1), Party: ours})
	h.must(&playerflow.JoinParty{Caller: by(3), Party: theirs})
	for n := range byte(4) {
		h.must(&playerflow.LeaveParty{Caller: by(n)})
	}
	for _, where := range []string{"in memory", "in the archive"} {
		x, err := engine.PartyChangesUntil(t.Context(), h.Engine, ours, 0, domain.TimeOf(h.Now()), 100)
		if err != nil || x.Since != 0 {
			t.Fatalf("%s: %v, %+v", where, err, x)
		}
		var who []string
		for _, c := range slices.Backward(x.All) {
			who = append(who, c.Player)
		}
		if !slices.Equal(slices.Compact(who), []string{"p0", "p1"}) {
			t.Errorf("%s: the members are %q", where, who)
		}
		if err := h.Advance(t.Context(), 48*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
}

// If very many records ended in one minute, a search omits them, says so, and ends.
func TestEndedUntilIsBounded(t *testing.T) {
	clock := engine.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	h := newHouse(t, engine.Config{Clock: clock})
	busy := h.Now().Add(-95 * time.Minute).UnixMilli()
	for i := range 40 {
		full := archive.Record{Kind: archive.Ticket, ID: fmt.Sprint(i), Created: busy, Ended: busy + int64(i), Data: make([]byte, 1<<20)}
		if err := h.config.Archive.Put(t.Context(), []archive.Record{full}); err != nil {
			t.Fatal(err)
		}
	}
	skipped := false
	until, pages := domain.TimeOf(h.Now()), 0
	for ; ; pages++ {
		x, err := engine.PlacementsUntil(t.Context(), h.Engine, "ranked", until, 5)
		if err != nil || pages > 50 {
			t.Fatalf("page %d: %v", pages, err)
		}
		skipped = skipped || x.Skipped
		if x.Since == 0 {
			break
		}
		if x.Since > until {
			t.Fatalf("page %d goes from %d to %d", pages, until, x.Since)
		}
		until = x.Since - 1
	}
	if !skipped || pages < 1 {
		t.Errorf("skipped %t after %d pages", skipped, pages)
	}
}
