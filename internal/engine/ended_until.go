package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// The archive orders records by their ends and has no index of placements by queue or of changes by party. A search therefore reads all records of a
// period and filters them, going back in time step by step. In few installations does a month's data exceed what one search may read.
const (
	untilReadMost  = 32 << 20 // bytes of the archive that one search reads
	untilStepMost  = 8 << 20  // most bytes that one step reads; a step that exceeds this is halved
	untilStepLeast = time.Minute
	untilLook      = 4096 // records of the state that one read examines
)

// EndedUntil is a list of ended records, newest first.
type EndedUntil[T any] struct {
	All     []T
	Since   domain.Time // All has every record that ended at Since or later; 0: every record there is
	Skipped bool        // some minute had too many records, of which some are missing in All
}

// PlacementsUntil returns the placements of a queue that ended at until or earlier, newest first. It returns limit placements or more, or fewer if
// there are no more or too many records of others lie between.
func PlacementsUntil(ctx context.Context, e *Engine, queue string, until domain.Time, limit int) (x EndedUntil[placement.Placement], err error) {
	add := func(p *placement.Placement) {
		if p.Queue == queue && p.End != 0 && p.End <= until {
			x.All = append(x.All, *p)
		}
	}
	// Memory first: a record is in the archive before it leaves memory.
	for at, begun := placement.Ref(0), false; at != 0 || !begun; begun = true {
		if err := e.Read(ctx, func(v *cell.View) error { at = v.PlacementsInMemory(at, untilLook, add); return nil }); err != nil {
			return x, err
		}
	}
	x.Since, x.Skipped, err = endedUntil(ctx, e, archive.Placement, 0, until, func(data []byte) error {
		p, err := hosting.DecodePlacement(data)
		if err == nil {
			add(&p)
		}
		return err
	}, func() bool { return len(x.All) >= limit })
	slices.SortFunc(x.All, func(a, b placement.Placement) int {
		return cmp.Or(cmp.Compare(b.End, a.End), cmp.Compare(b.No, a.No), cmp.Compare(b.ID, a.ID))
	})
	x.All = slices.CompactFunc(x.All, func(a, b placement.Placement) bool { return a.No == b.No && a.ID == b.ID })
	return x, err
}

// PartyChangesUntil returns the changes, between from and until, of players' keys that name the party, in the manner of PlacementsUntil.
func PartyChangesUntil(ctx context.Context, e *Engine, party flow.PartyID, from, until domain.Time, limit int) (x EndedUntil[flow.Change], err error) {
	add := func(c *flow.Change) {
		if c.Keys.Party == party && c.At >= from && c.At <= until {
			x.All = append(x.All, *c)
		}
	}
	for at, begun := flow.ChangeRef(0), false; at != 0 || !begun; begun = true {
		if err := e.Read(ctx, func(v *cell.View) error { at = v.ChangesInMemory(at, untilLook, add); return nil }); err != nil {
			return x, err
		}
	}
	x.Since, x.Skipped, err = endedUntil(ctx, e, archive.PlayerChange, from, until, func(data []byte) error {
		c, err := playerflow.DecodeChange(data)
		if err == nil {
			add(&c)
		}
		return err
	}, func() bool { return len(x.All) >= limit })
	slices.SortFunc(x.All, func(a, b flow.Change) int { return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(b.EndedNo, a.EndedNo)) })
	x.All = slices.CompactFunc(x.All, func(a, b flow.Change) bool { return a.EndedNo == b.EndedNo })
	return x, err
}

// endedUntil calls add for the archived records of a kind that ended between from and until. It goes back in time step by step until enough reports
// true or the read limit is reached. It has added all records that ended at `since` or later, unless skipped reports that it skipped some of a minute
// with too many.
func endedUntil(ctx context.Context, e *Engine, kind archive.Kind, from, until domain.Time, add func(data []byte) error, enough func() bool) (since domain.Time, skipped bool, err error) {
	if !e.covers.complete() {
		return 0, false, domain.Refuse(domain.Overloaded, "this node is still copying the records of what has ended; use another node, or try again later")
	}
	end := int64(min(until, future(e))) + 1
	oldest := max(e.Now().Add(-e.config.Retention-archive.Grain*time.Millisecond).UnixMilli(), int64(from), 0)
	left, start := untilReadMost, end
	for step := latestFirstStep.Milliseconds(); end > oldest && (end == start || left > 0 && !enough()); {
		if left <= 0 { // past the limit, it goes back by one minute only
			step = untilStepLeast.Milliseconds()
		}
		began := max(end-step, oldest)
		some, read, whole, err := endedBetween(ctx, e.config.Archive, kind, began, end)
		if err != nil {
			return 0, skipped, err
		}
		left -= read
		if !whole && end-began > untilStepLeast.Milliseconds() {
			step = max((end-began)/2, untilStepLeast.Milliseconds())
			continue
		}
		skipped = skipped || !whole
		for _, data := range some {
			if err := add(data); err != nil {
				return 0, skipped, err
			}
		}
		if end = began; whole {
			step *= latestStepGrows
		}
	}
	if end <= oldest {
		return 0, skipped, nil
	}
	return domain.Time(end), skipped, nil
}

// endedBetween returns the archived records of a kind that ended in [from, end). whole is false if there may be more.
func endedBetween(ctx context.Context, store archive.Archive, kind archive.Kind, from, end int64) (all [][]byte, read int, whole bool, err error) {
	for behind := (archive.Place{Ended: from}); ; {
		page, err := store.Page(ctx, behind, pageBytes)
		if err != nil {
			return nil, read, false, err
		}
		for i := range page.Records {
			r := &page.Records[i]
			read += len(r.Data)
			if r.Kind == kind && r.Ended >= from && r.Ended < end {
				all = append(all, r.Data)
			}
		}
		behind = page.Next
		if !page.More || behind.Ended-archive.Grain >= end {
			return all, read, true, nil
		}
		if read > untilStepMost {
			return all, read, false, nil
		}
	}
}
