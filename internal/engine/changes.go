package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// ChangesOf returns at most limit changes of a player's keys, newest first; none for an unknown player.
func (e *Engine) ChangesOf(ctx context.Context, player string, limit int) ([]flow.Change, error) {
	return e.ChangesUntil(ctx, player, future(e), limit)
}

// ChangesUntil returns the newest changes up to an instant, like ChangesOf.
func (e *Engine) ChangesUntil(ctx context.Context, player string, until domain.Time, limit int) ([]flow.Change, error) {
	var all []flow.Change
	err := e.Read(ctx, func(v *cell.View) error { all = v.ChangesOf(player); return nil })
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(x flow.Change) bool { return x.At > until })
	if len(all) < limit {
		archived, _, err := latest(e, until, limit, func(from, end int64, most int) ([]flow.Change, error) {
			return changesBetween(ctx, e, player, from, end, most)
		})
		if err != nil {
			return nil, err
		}
		all = append(all, archived...)
	}
	slices.SortFunc(all, func(a, b flow.Change) int { return cmp.Compare(b.EndedNo, a.EndedNo) })
	all = slices.CompactFunc(all, func(a, b flow.Change) bool { return a.EndedNo == b.EndedNo })
	return all[:min(limit, len(all))], nil
}

const changesPage = 256

// changesBetween returns archived changes in [from, end). If there are more than `most`, it returns at least `most`+1
// of them.
func changesBetween(ctx context.Context, e *Engine, player string, from, end int64, most int) (all []flow.Change, err error) {
	at := archive.Cursor{Created: max(from, 0)} // sorts before every record, because no id is empty
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
		if len(records) < changesPage || len(all) > most {
			return all, nil
		}
	}
}
