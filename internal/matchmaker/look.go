package matchmaker

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// Status has the figures of one configuration's matcher.
type Status struct {
	Configuration string
	matcher.Stats
	PassTook time.Duration // the latest pass
	Refused  uint64        // commands with proposals that the core has refused
	// RefusedMatches counts the refused proposals by reason; Conflict means a ticket that was cancelled, is held, or has
	// changed.
	RefusedMatches map[domain.Reason]uint64
}

// Status returns the figures of all configurations, ordered by name. It returns nothing while another node leads, so the
// figures of several nodes can be added up.
func (r *Runner) Status() []Status {
	var all []Status
	for _, l := range r.all() {
		l.mu.Lock()
		if l.pool != nil {
			all = append(all, Status{l.name, l.pool.matcher.Stats(), l.took, l.lost.Load(), l.refusals()})
		}
		l.mu.Unlock()
	}
	return all
}

func (l *lane) refusals() map[domain.Reason]uint64 {
	all := map[domain.Reason]uint64{}
	for reason := range l.why {
		if n := l.why[reason].Load(); n > 0 {
			all[domain.Reason(reason)] = n
		}
	}
	return all
}

// Counts returns how often each rule was evaluated with a ticket that waits or has just ended; nil if unknown.
func (r *Runner) Counts(configuration string, no uint64) []matchmaking.RuleCount {
	l := r.lane(configuration)
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if x, ok := l.ends.byTicket[no]; ok {
		return counts(x.why.Counts)
	}
	if l.pool == nil {
		return nil
	}
	return counts(l.pool.matcher.Counts(no))
}

// Explain returns why a ticket is waiting, with its rule set; false if it is not waiting in a pool.
func (r *Runner) Explain(configuration string, no uint64, now domain.Time) (matcher.Explanation, *ruleset.RuleSet, bool) {
	l := r.lane(configuration)
	if l == nil {
		return matcher.Explanation{}, nil, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pool == nil {
		return matcher.Explanation{}, nil, false
	}
	x, ok := l.pool.matcher.Explain(no, now)
	return x, l.pool.rules, ok
}

func (r *Runner) lane(configuration string) *lane {
	o := r.office()
	if o == nil {
		return nil
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.lanes[configuration]
}
