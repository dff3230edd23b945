package matcher

// A waiting ticket counts how often each rule was evaluated with it and another ticket, and with complete candidates of which it was the
// anchor. The counts show an operator which rule keeps it waiting. Tickets that an index left out count as rejected by the index's rule.

// counters returns a ticket's counts: passed and failed for each rule.
func (m *Matcher) counters(slot int32) []uint32 {
	n := 2 * m.ruleCount()
	return m.pool.counts[int(slot)*n : int(slot)*n+n : int(slot)*n+n]
}

func add(to *uint32, n uint64) { *to = uint32(min(uint64(*to)+n, 1<<32-1)) }

// count counts the checks of a ticket with the anchor. softs has the failed soft checks, and `at` is the check that failed.
func (s *search) count(at int, ok bool, softs uint64) {
	counts := s.m.counters(s.anchor)
	if ok || at < 0 {
		at = len(s.level.whole)
	} else {
		counts[2*s.level.whole[at].rule+1]++
	}
	for i := range s.level.whole[:at] {
		c := &s.level.whole[i]
		if c.soft && softs&c.bit != 0 {
			counts[2*c.rule+1]++
		} else {
			counts[2*c.rule]++
		}
	}
	s.m.stats.Evaluations += uint64(at + 1)
}

// countFinal counts the result of a rule for a complete candidate.
func (s *search) countFinal(rule int, holds bool) {
	counts := s.m.counters(s.anchor)
	if holds {
		add(&counts[2*rule], 1)
	} else {
		add(&counts[2*rule+1], 1)
	}
	s.m.stats.Evaluations++
}

// countOutside counts the tickets that the walk leaves out.
func (s *search) countOutside() {
	p := s.m.plan
	if len(p.equals) == 0 && p.near < 0 {
		return
	}
	g := s.m.pool.tickets[s.anchor].shelf.group
	counts := s.m.counters(s.anchor)
	if len(p.equals) > 0 {
		add(&counts[2*p.equalsBy[0]+1], uint64(s.m.pool.ages.tickets-g.tickets))
	}
	if p.near >= 0 {
		add(&counts[2*p.nearRule+1], uint64(max(0, g.tickets-s.walk.tickets)))
	}
}

// Counts returns how often each rule was evaluated with a ticket that waits; nil for one that does not.
func (m *Matcher) Counts(key uint64) []RuleCount {
	slot, ok := m.pool.slots[key]
	if !ok {
		return nil
	}
	return m.sumCounts([]joined{{slot: slot}})
}

// countGone adds the counts of a ticket that leaves the pool to those of all that have left it.
func (m *Matcher) countGone(slot int32) {
	if m.gone == nil {
		m.gone = make([]RuleCount, m.ruleCount())
	}
	own := m.counters(slot)
	for i := range m.gone {
		m.gone[i].Rule = i
		m.gone[i].Passed += uint64(own[2*i])
		m.gone[i].Failed += uint64(own[2*i+1])
	}
}

// Gone returns how often each rule was evaluated with the tickets that have left the pool since the matcher was created. The caller must not change it.
func (m *Matcher) Gone() []RuleCount { return m.gone }

// sumCounts adds the counts of tickets.
func (m *Matcher) sumCounts(tickets []joined) []RuleCount {
	counts := make([]RuleCount, m.ruleCount())
	for i := range counts {
		counts[i].Rule = i
		for _, j := range tickets {
			own := m.counters(j.slot)
			counts[i].Passed += uint64(own[2*i])
			counts[i].Failed += uint64(own[2*i+1])
		}
	}
	return counts
}
