package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/archive/archivetest"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal/journaltest"
)

// piecemeal removes fewer records at a time than it may, as an archive does in which later records have replaced some.
type piecemeal struct{ archive.Archive }

func (p piecemeal) Expire(ctx context.Context, endedBefore int64, _ int) (int, error) {
	return p.Archive.Expire(ctx, endedBefore, 1)
}

// TestAllExpired: each round removes every expired record, however few the archive removes at a time.
func TestAllExpired(t *testing.T) {
	clock := engine.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	vault, err := archivetest.NewMemory(1).Open()
	if err != nil {
		t.Fatal(err)
	}
	ended := clock.Now().Add(-2 * engine.DefaultRetention).UnixMilli()
	var all []archive.Record
	for n := range 5 {
		all = append(all, archive.Record{Kind: archive.Placement, ID: fmt.Sprint(n), Created: ended, Ended: ended})
	}
	if err := vault.Put(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	j, err := journaltest.NewMemory(1).Open()
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Config{Journal: j, Archive: piecemeal{vault}, Cell: cell.DefaultConfig(), Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Advance(t.Context(), 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if _, found, err := vault.Get(t.Context(), r.Kind, r.ID); found || err != nil {
			t.Errorf("record %s: found %t, %v", r.ID, found, err)
		}
	}
}
