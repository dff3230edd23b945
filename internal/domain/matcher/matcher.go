package matcher

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// Matcher has the pool of one configuration, with its indexes and the state of its searches. It is not safe for concurrent use.
type Matcher struct {
	rules  *ruleset.RuleSet
	config Config
	plan   *plan
	pool   pool
	queue  queue
	search search
	large  large
	seed   uint64 // of the configuration's name
	exact  int    // see exactPool; tests set it
	kept   found  // a match that may be improved
	stats  Stats
	gone   []RuleCount // of the tickets that have left the pool
}

// New returns a matcher with an empty pool.
func New(rules *ruleset.RuleSet, c Config) *Matcher {
	if c.Budget <= 0 {
		c.Budget = defaultBudget
	}
	if c.Work <= 0 {
		c.Work = defaultWork
	}
	m := &Matcher{rules: rules, config: c, plan: newPlan(rules, c.AdditionalPlayers), seed: mixText(hashSeed, c.Name), exact: exactPool}
	m.pool.slots = map[uint64]int32{}
	m.pool.groups = map[groupKey]*group{}
	m.search.m = m
	return m
}

// Len returns the number of tickets in the pool.
func (m *Matcher) Len() int { return len(m.pool.slots) }

func (m *Matcher) Stats() Stats {
	s := m.stats
	s.Tickets, s.Players, s.Unmatchable, s.Waiting = len(m.pool.slots), m.pool.players, m.pool.faulty, m.queue.len()
	s.Unfinished = len(m.queue.hard)
	return s
}

// Dirty reports whether Pass has work that does not depend on time.
func (m *Matcher) Dirty() bool { return m.queue.len() > 0 }

// Unfinished reports whether searches that exhausted their budget can continue. A Pass without other work gives one of them another
// budget, which is less urgent than Dirty.
func (m *Matcher) Unfinished() bool { return len(m.queue.hard) > 0 }

// Due returns when time alone can make a match possible: the next moment at which a ticket reaches a wait of the rule set.
func (m *Matcher) Due(now domain.Time) (at domain.Time, ok bool) {
	for _, wait := range m.rules.Waits()[1:] {
		ms := domain.Time(wait) * 1000
		chunk, i := m.firstAfter(&m.pool.ages, int64(now-ms), false)
		slot, found := m.pool.ages.at(chunk, i)
		if !found {
			continue
		}
		if reached := m.pool.tickets[slot].start + ms; !ok || reached < at {
			at, ok = reached, true
		}
	}
	return at, ok
}

// Pass searches for matches with bounded work; if some is left, Dirty stays true and the next call continues.
func (m *Matcher) Pass(now domain.Time) []Proposal { return m.PassSteps(now, m.config.Work) }

// PassSteps is Pass with another bound on its work; it searches around at least one ticket.
func (m *Matcher) PassSteps(now domain.Time, steps int) []Proposal {
	m.stats.Passes++
	m.reachWaits(now)
	steps = max(steps, 1)
	if m.rules.Large {
		return m.passLarge(now, steps)
	}
	return m.passSmall(now, m.stats.Steps+uint64(steps))
}
