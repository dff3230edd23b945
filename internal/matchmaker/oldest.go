package matchmaker

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// Oldest explains why a configuration's longest-waiting ticket waits. It is immutable.
type Oldest struct {
	Configuration string
	Waiting       int // tickets
	Why           matcher.Explanation
	Rules         *ruleset.RuleSet
}

// However many people ask, each configuration is examined at most once in oldestKept, and at most oldestMost of them per call; the others follow at
// the next call.
const (
	oldestKept = 2 * time.Second
	oldestMost = 100
)

// Oldest returns, for each configuration, why the ticket waits that has waited longest; here is false while another node leads. An answer may be two
// seconds old, or older during a long pass, because Oldest does not wait for a pass.
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

// oldest is the latest result.
type oldest struct {
	x  *Oldest // nil: no ticket waits
	at time.Time
}

// lookAtOldest explains the oldest ticket if it may and no recent result is known.
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
