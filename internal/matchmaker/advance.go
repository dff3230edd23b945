package matchmaker

import (
	"context"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/domain"
)

// The methods for a clock that is moved manually: see engine.Beside.

// Due returns when the passage of time alone may lead to a match, because a rule set relaxes for a waiting ticket.
// Zero: never.
func (r *Runner) Due() (due domain.Time) {
	now := domain.TimeOf(r.config.Engine.Now())
	for _, l := range r.all() {
		l.mu.Lock()
		if l.pool != nil {
			if at, ok := l.pool.matcher.Due(now); ok && at > now && (due == 0 || at < due) {
				due = at
			}
		}
		l.mu.Unlock()
	}
	return due
}

// Settle searches for matches now, and reports whether that produced commands, which the core has then executed.
func (r *Runner) Settle(ctx context.Context) (said bool, err error) {
	o := r.office()
	if o == nil {
		return false, nil
	}
	select {
	case <-o.loaded:
	case <-ctx.Done():
		return false, ctx.Err()
	case <-o.ctx.Done():
		return false, nil
	}
	for _, l := range r.all() {
		answer := make(chan bool, 1)
		select {
		case l.asked <- answer:
			said = <-answer || said
		case <-l.over:
		case <-ctx.Done():
			return said, ctx.Err()
		}
	}
	return said, nil
}

// all returns the lanes, ordered by name.
func (r *Runner) all() []*lane {
	o := r.office()
	if o == nil {
		return nil
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	lanes := make([]*lane, 0, len(o.lanes))
	for _, name := range slices.Sorted(maps.Keys(o.lanes)) {
		lanes = append(lanes, o.lanes[name])
	}
	return lanes
}

// passNow makes a pass and returns after its proposals have reached the core. ok is false when the lane ends.
func (l *lane) passNow(ctx context.Context) (said, ok bool) {
	l.unbrought.Wait()
	if more, err := l.hear(); err != nil || !more {
		return false, false
	}
	x := l.look(ctx)
	l.bring(ctx, x)
	return len(x.news) > 0 || len(x.matches) > 0, ctx.Err() == nil
}
