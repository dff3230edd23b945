package matcher

import (
	"fmt"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// Matcher is one configuration's pool and what it knows about it. It is not safe for concurrent use.
type Matcher struct {
	rules  *ruleset.RuleSet
	config Config
	slots  map[uint64]int32 // by the caller's key
	stats  Stats
}

// New returns a matcher with an empty pool.
func New(rules *ruleset.RuleSet, c Config) *Matcher {
	if c.Budget <= 0 {
		c.Budget = defaultBudget
	}
	if c.Work <= 0 {
		c.Work = defaultWork
	}
	return &Matcher{rules: rules, config: c, slots: map[uint64]int32{}}
}

// Add puts a ticket into the pool. It fails, and changes nothing, for an attribute of another kind than declared, a
// roster player on a team that does not exist, and a key that is in the pool already.
func (m *Matcher) Add(t Ticket) error {
	if _, ok := m.slots[t.Key]; ok {
		return fmt.Errorf("ticket %d: is in the pool already", t.Key)
	}
	m.slots[t.Key] = 0
	return nil
}

// Remove takes a ticket out of the pool; one that is not there is no mistake.
func (m *Matcher) Remove(key uint64) { delete(m.slots, key) }

// Len is how many tickets the pool holds.
func (m *Matcher) Len() int { return len(m.slots) }

// Dirty reports whether Pass has something to do that does not depend on time.
func (m *Matcher) Dirty() bool { return false }

// Due returns when time alone can make a match possible: the next moment at which a ticket reaches a wait of the rule set.
func (m *Matcher) Due(now domain.Time) (at domain.Time, ok bool) { return 0, false }

// Pass looks for matches, in bounded work; if some is left, Dirty stays true and the next call goes on.
func (m *Matcher) Pass(now domain.Time) []Proposal { return nil }

// Counts returns how often each rule was evaluated with a ticket that waits; nil for one that does not.
func (m *Matcher) Counts(key uint64) []RuleCount { return nil }

// Explain says why a ticket waits; false for one that does not.
func (m *Matcher) Explain(key uint64, now domain.Time) (Explanation, bool) {
	return Explanation{}, false
}

// Stats returns what the matcher has done.
func (m *Matcher) Stats() Stats { return m.stats }
