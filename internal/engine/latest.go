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

// Memory and archive list forward in time. To find the latest records the search goes back from an instant in growing steps: records of a busy
// subject are in the first steps, and a quiet one has few. A step with too many is cut in half, so that what is read stays bounded.
const (
	latestFirstStep = time.Hour
	latestStepGrows = 4
	latestReads     = 4 // times the limit that one step may read
)

// future is later than any record: the clock may have been set back since.
func future(e *Engine) domain.Time { return domain.TimeOf(e.Now().Add(time.Hour)) }

// latest returns at least the last limit records until an instant, or all if there are fewer, in no particular order. between returns the records that
// were created from `from` on and before end, in Unix milliseconds, or more than `most` of them. All records created at `since` or later are in the result.
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

// LatestGames returns the game sessions of a fleet that were created last until an instant, the latest first: limit of them or more, or all if there are
// fewer. All that were created at `since` or later are among them.
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
