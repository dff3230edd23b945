package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// ChangesOf returns at most limit changes of a player's keys, the latest first. An unknown player has none.
func (e *Engine) ChangesOf(ctx context.Context, player string, limit int) ([]flow.Change, error) {
	var all []flow.Change
	err := e.Read(ctx, func(v *cell.View) error { all = v.ChangesOf(player); return nil })
	if err != nil {
		return nil, err
	}
	if len(all) < limit {
		archived, err := e.archivedChanges(ctx, player, limit)
		if err != nil {
			return nil, err
		}
		all = append(all, archived...)
	}
	slices.SortFunc(all, func(a, b flow.Change) int { return cmp.Compare(b.EndedNo, a.EndedNo) })
	all = slices.CompactFunc(all, func(a, b flow.Change) bool { return a.EndedNo == b.EndedNo })
	return all[:min(limit, len(all))], nil
}

// The archive lists forward in time. To find the latest changes the search goes back from now in growing steps: a busy player's changes
// are in the first steps, and a quiet player has few.
const (
	changesFirstStep = time.Hour
	changesStepGrows = 4
	changesPage      = 256
)

// archivedChanges returns at least the last limit changes in the archive, or all if there are fewer.
func (e *Engine) archivedChanges(ctx context.Context, player string, limit int) (all []flow.Change, err error) {
	now := e.Now()
	end := now.Add(time.Hour).UnixMilli() // the clock may have been set back since
	oldest := now.Add(-e.config.Retention - archive.Grain*time.Millisecond).UnixMilli()
	for step := changesFirstStep; end > oldest && len(all) < limit; step *= changesStepGrows {
		from := max(now.Add(-step).UnixMilli(), oldest)
		some, err := e.changesBetween(ctx, player, from, end)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		end = from
	}
	return all, nil
}

// changesBetween returns the archived changes from `from` on and before end.
func (e *Engine) changesBetween(ctx context.Context, player string, from, end int64) (all []flow.Change, err error) {
	at := archive.Cursor{Created: max(from, 0)} // every record is after it, because no id is empty
	for {
		records, err := e.archivedList(ctx, archive.PlayerChange, archive.ByPlayer, player, at, changesPage)
		if err = ignoreDamage(err); err != nil {
			return nil, err
		}
		for _, r := range records {
			if r.Created >= end {
				return all, nil
			}
			x, err := playerflow.DecodeChange(r.Data)
			if err != nil {
				return nil, err
			}
			all = append(all, x)
			at = r.Cursor()
		}
		if len(records) < changesPage {
			return all, nil
		}
	}
}
