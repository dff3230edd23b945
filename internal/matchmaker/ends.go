package matchmaker

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// lastEnds remembers, for the last tickets that ended in the pool, which rules rejected them, so that their end can be
// explained. A restart or a change of leader discards it.
type lastEnds struct {
	byTicket map[uint64]ticketEnd
	order    []uint64 // a ring buffer once it is full
	oldest   int
}

type ticketEnd struct {
	why   matcher.Explanation
	rules *ruleset.RuleSet
}

const lastEndsMost = 4096 // tickets of a configuration

func (e *lastEnds) keep(no uint64, x ticketEnd) {
	if e.byTicket == nil {
		e.byTicket = map[uint64]ticketEnd{}
	}
	if len(e.order) < lastEndsMost {
		e.order = append(e.order, no)
	} else {
		delete(e.byTicket, e.order[e.oldest])
		e.order[e.oldest] = no
		e.oldest = (e.oldest + 1) % lastEndsMost
	}
	e.byTicket[no] = x
}

// keepEnd remembers why a ticket that ended, and now leaves the pool, found no match.
func (l *lane) keepEnd(no uint64) {
	if why, ok := l.pool.matcher.ExplainEnd(no, domain.TimeOf(l.office.config.Engine.Now())); ok {
		l.ends.keep(no, ticketEnd{why, l.pool.rules})
	}
}

// ExplainEnd returns why a ticket found no match until it ended; false if it was not in a pool then, or the explanation
// is no longer kept.
func (r *Runner) ExplainEnd(configuration string, no uint64) (matcher.Explanation, *ruleset.RuleSet, bool) {
	l := r.lane(configuration)
	if l == nil {
		return matcher.Explanation{}, nil, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	x, ok := l.ends.byTicket[no]
	return x.why, x.rules, ok
}
