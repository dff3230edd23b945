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

// The archive has no index of placements by queue, or of changes by party: its records lie in the order of their ends. So a search for those of one reads all records of a time, and
// goes back in steps. Few installations write more in a month than one search may read.
const (
	untilReadMost  = 32 << 20 // bytes of the archive that one search reads
	untilStepMost  = 8 << 20  // bytes that one step reads; a step of more is cut in half
	untilStepLeast = time.Minute
	untilLook      = 4096 // records of the state that one read examines
)

// EndedUntil are records that ended, the latest first.
type EndedUntil[T any] struct {
	All     []T
	Since   domain.Time // all that ended then or later are in All; 0: that is all there are
	Skipped bool        // except those of a minute in which too much ended
}

// PlacementsUntil returns the placements of a queue that had ended by an instant, the latest first: limit of them or more, or fewer if there are no more, or too many records of others.
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

// PartyChangesUntil returns the changes of players' keys since a time by which they were in a party, as PlacementsUntil does.
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

// endedUntil adds the archived records of a kind that ended from a time until an instant, the latest steps of time first, until there are enough or it has read as much as it may. All that ended
// since then were added, except those of a minute with too many.
func endedUntil(ctx context.Context, e *Engine, kind archive.Kind, from, until domain.Time, add func(data []byte) error, enough func() bool) (since domain.Time, skipped bool, err error) {
	if !e.covers.complete() {
		return 0, false, domain.Refuse(domain.Overloaded, "this node still copies the records of what has ended; ask another one, or later")
	}
	end := int64(min(until, future(e))) + 1
	oldest := max(e.Now().Add(-e.config.Retention-archive.Grain*time.Millisecond).UnixMilli(), int64(from), 0)
	left, start := untilReadMost, end
	for step := latestFirstStep.Milliseconds(); end > oldest && (end == start || left > 0 && !enough()); {
		if left <= 0 { // it goes back by a minute at least
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

// endedBetween returns the archived records of a kind that ended from `from` on and before end; whole is false if there may be more.
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
