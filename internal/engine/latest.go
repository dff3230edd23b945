package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
)

// Memory and archive list records forward in time. To find the latest records, a search goes back from an instant in growing steps: for a busy
// subject the first steps suffice, and a quiet one has few records. A step with too many records is halved, which bounds what is read.
const (
	latestFirstStep = time.Hour
	latestStepGrows = 4
	latestReads     = 4 // most records that one step reads, as a multiple of the limit
)

// future returns a time later than any record, with a margin because the clock may have been set back.
func future(e *Engine) domain.Time { return domain.TimeOf(e.Now().Add(time.Hour)) }

// latest returns at least the last limit records up to an instant, or all if there are fewer, in no particular order. between returns the records
// created in [from, end), in Unix milliseconds, or more than `most` of them. The result contains every record created at `since` or later.
func latest[T any](e *Engine, until domain.Time, limit int, between func(from, end int64, most int) ([]T, error)) (all []T, since domain.Time, err error) {
	end := int64(min(until, future(e))) + 1
	oldest := max(e.Now().Add(-e.config.Retention-archive.Grain*time.Millisecond).UnixMilli(), 0)
	for step := latestFirstStep.Milliseconds(); end > oldest && len(all) < limit; {
		from := max(end-step, oldest)
		some, err := between(from, end, latestReads*limit)
		if err != nil {
			return nil, 0, err
		}
		if len(some) > latestReads*limit && step > 1 {
			step = max(min(step, end-from)/2, 1)
			continue
		}
		all, end = append(all, some...), from
		step *= latestStepGrows
	}
	if end <= oldest {
		return all, 0, nil
	}
	return all, domain.Time(end), nil
}

// LatestGames returns the game sessions of a fleet that were created last, at until or earlier, newest first. It returns limit of them or more, or
// all if there are fewer. The result contains every one created at `since` or later.
func (e *Engine) LatestGames(ctx context.Context, fleetID string, until domain.Time, limit int) (all []session.GameSession, since domain.Time, err error) {
	all, since, err = latest(e, until, limit, func(from, end int64, most int) ([]session.GameSession, error) {
		some, _, err := e.GameSessions(ctx, fleetID, hosting.GameFilter{}, hosting.GamePlace{Created: domain.Time(from)}, most+1)
		return slices.DeleteFunc(some, func(g session.GameSession) bool { return int64(g.Created) >= end }), err
	})
	slices.SortFunc(all, func(a, b session.GameSession) int {
		return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(b.ID, a.ID))
	})
	return all, since, err
}

// LatestPlayerSessions returns the player sessions of a player that were created last, like LatestGames.
func (e *Engine) LatestPlayerSessions(ctx context.Context, player string, until domain.Time, limit int) (all []hosting.PlayerSession, since domain.Time, err error) {
	all, since, err = latest(e, until, limit, func(from, end int64, most int) ([]hosting.PlayerSession, error) {
		some, _, err := e.PlayersNamed(ctx, player, PlayerPlace{Created: domain.Time(from)}, most+1)
		return slices.DeleteFunc(some, func(p hosting.PlayerSession) bool { return int64(p.Created) >= end }), err
	})
	slices.SortFunc(all, func(a, b hosting.PlayerSession) int {
		return cmp.Or(cmp.Compare(b.Created, a.Created), slices.Compare(b.ID[:], a.ID[:]))
	})
	return all, since, err
}
