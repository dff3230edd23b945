package matchmaker

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// Oldest is why the ticket that has waited longest in a configuration waits. It is not changed.
type Oldest struct {
	Configuration string
	Waiting       int // tickets
	Why           matcher.Explanation
	Rules         *ruleset.RuleSet
}

// However many people look, a configuration is asked once in oldestKept, and oldestMost of them by one call; others follow with the next call.
const (
	oldestKept = 2 * time.Second
	oldestMost = 100
)

// Oldest returns, by configuration, why the tickets that have waited longest wait; false while another node decides. An answer is up to two seconds old, and older
// during a long pass: it waits for none.
func (r *Runner) Oldest() (all []*Oldest, here bool) {
	asked := 0
	for _, l := range r.all() {
		x, fresh := l.lookAtOldest(asked < oldestMost)
		if fresh {
			asked++
		}
		if x != nil {
			all = append(all, x)
		}
	}
	return all, r.office() != nil
}

// oldest is what was found last.
type oldest struct {
	x  *Oldest // nil: no ticket waits
	at time.Time
}

// lookAtOldest explains the oldest ticket if it may and nothing recent is known.
func (l *lane) lookAtOldest(may bool) (x *Oldest, fresh bool) {
	known := l.oldest.Load()
	if known == nil {
		known = &oldest{}
	}
	if !may || time.Since(known.at) < oldestKept || !l.mu.TryLock() {
		return known.x, false
	}
	defer l.mu.Unlock()
	if l.pool != nil {
		if why, ok := l.pool.matcher.ExplainOldest(domain.TimeOf(l.office.config.Engine.Now())); ok {
			x = &Oldest{l.name, l.pool.matcher.Len(), why, l.pool.rules}
		}
	}
	l.oldest.Store(&oldest{x, time.Now()})
	return x, true
}
