package matcher

import (
	"math"
	"slices"

	"github.com/musterhq/muster/internal/domain"
)

// Explain explains why a ticket waits. It returns false if the ticket is not in the pool.
func (m *Matcher) Explain(key uint64, now domain.Time) (Explanation, bool) {
	slot, ok := m.pool.slots[key]
	if !ok {
		return Explanation{}, false
	}
	stats := m.stats // an explanation does not count as work
	defer func() { m.stats = stats }()
	e := m.explain(slot, now, explainLooked)
	if e.Unmatchable != "" {
		return e, true
	}
	e.Together = m.together(slot, now)
	e.Steps = m.steps(slot, e.Level)
	for i := range min(len(e.Steps), explainSteps) {
		e.Steps[i].Partners, _ = m.partners(slot, e.Steps[i].At, explainLooked)
	}
	return e, true
}

// ExplainOldest explains why the ticket that has waited longest waits. It returns false for an empty pool. It costs a small part of
// Explain, because its Steps lack Partners.
func (m *Matcher) ExplainOldest(now domain.Time) (Explanation, bool) {
	slot, ok := m.pool.ages.at(0, 0)
	if !ok {
		return Explanation{}, false
	}
	stats := m.stats
	defer func() { m.stats = stats }()
	e := m.explain(slot, now, explainEnded)
	if e.Unmatchable == "" {
		e.Together = m.together(slot, now)
		e.Steps = m.steps(slot, e.Level)
	}
	return e, true
}

// steps returns the levels after a level, without partners.
func (m *Matcher) steps(slot int32, level int) (all []Step) {
	waits := m.rules.Waits()
	for k := level + 1; k < len(waits); k++ {
		step := Step{At: m.pool.tickets[slot].start + domain.Time(waits[k])*1000, Level: k}
		before, then := m.rules.Level(k-1), m.rules.Level(k)
		for i := range then.Rules {
			if then.Rules[i] != before.Rules[i] {
				step.Rules = append(step.Rules, i)
			}
		}
		for i := range then.Teams {
			if then.Teams[i] != before.Teams[i] {
				step.Teams = append(step.Teams, i)
			}
		}
		all = append(all, step)
	}
	return all
}

// ExplainEnd explains why a ticket that is about to leave the pool found no match. It is a cheap part of Explain, because many tickets may
// time out at the same moment.
func (m *Matcher) ExplainEnd(key uint64, now domain.Time) (Explanation, bool) {
	slot, ok := m.pool.slots[key]
	if !ok {
		return Explanation{}, false
	}
	stats := m.stats
	defer func() { m.stats = stats }()
	e := m.explain(slot, now, explainEnded)
	e.Oldest = nil
	return e, true
}

// explain makes the common part of all explanations, from at most `looked` other tickets.
func (m *Matcher) explain(slot int32, now domain.Time, looked int) Explanation {
	t, r := &m.pool.tickets[slot], &m.pool.records[slot]
	level := m.level(slot, now)
	e := Explanation{
		Key: r.key, Waited: age(t.start, now), Level: level, Unmatchable: r.fault, Backfill: t.backfill,
		Needed: m.rules.Level(level).Minimum, Players: t.players, Others: m.Len() - 1, Counts: m.Counts(r.key),
	}
	if e.Unmatchable != "" {
		return e
	}
	if !m.rules.Large {
		e.Alone = m.objections(level, m.against(level, slot), slot)
	}
	e.Effort, e.Turns = m.effortOf(slot)
	e.Now, e.Oldest = m.partners(slot, now, looked)
	return e
}

// partners judges the ticket together with each of the oldest others at a time.
func (m *Matcher) partners(slot int32, now domain.Time, most int) (p Partners, oldest []Partner) {
	rejected := make([]Rejection, m.ruleCount())
	for _, chunk := range m.pool.ages.chunks {
		for _, other := range chunk {
			if other == slot {
				continue
			}
			if p.Looked == most {
				p.More = true
				break
			}
			p.Looked++
			one, rules := m.pair(slot, other, now)
			if len(oldest) < explainOldest {
				one.Rejected = m.objections(one.Level, rules, slot, other)
				oldest = append(oldest, one)
			}
			if one.Possible {
				p.Possible++
				p.Players += m.pool.tickets[other].players
			}
			if one.NoRoom {
				p.NoRoom++
			}
			for _, rule := range rules {
				if r := &rejected[rule]; r.Tickets == 0 {
					*r = Rejection{Rule: rule, With: one.Key, Reason: m.reasonAgainst(one.Level, rule, slot, other)}
				}
				rejected[rule].Tickets++
			}
		}
	}
	for _, r := range rejected {
		if r.Tickets > 0 {
			p.Rejected = append(p.Rejected, r)
		}
	}
	return p, oldest
}

// pair judges two tickets at the level that their match would have, and returns the rules that reject them.
func (m *Matcher) pair(slot, other int32, now domain.Time) (one Partner, rules []int) {
	two := [2]joined{{slot: slot}, {slot: other}}
	one = Partner{Key: m.pool.records[other].key, Level: m.ageLevel(two[:], now)}
	one.NoRoom = !m.roomFor(one.Level, slot, other)
	rules = m.against(one.Level, slot, other)
	one.Possible = !one.NoRoom && len(rules) == 0
	return one, rules
}

// objections adds reasons to the rules that reject some tickets.
func (m *Matcher) objections(level int, rules []int, tickets ...int32) (all []Objection) {
	for _, rule := range rules {
		all = append(all, Objection{rule, m.reasonAgainst(level, rule, tickets...)})
	}
	return all
}

// reasonAgainst explains why a rule rejects tickets, in the team assignment that the fewest rules reject.
func (m *Matcher) reasonAgainst(level, rule int, tickets ...int32) (reason string) {
	s, fewest := &m.search, math.MaxInt
	s.level, s.take = &m.plan.levels[level], which{}
	s.eachStanding(tickets, func() {
		if rules := s.standing(); len(rules) < fewest && slices.Contains(rules, rule) {
			fewest = len(rules)
			m.fillCandidate(&s.cand, s.joined)
			reason = m.rules.Level(level).Reason(rule, &s.cand.Candidate)
		}
	})
	return reason
}

// roomFor reports whether teams have room for both tickets.
func (m *Matcher) roomFor(level int, slot, other int32) bool {
	a, b := &m.pool.tickets[slot], &m.pool.tickets[other]
	if a.backfill && b.backfill {
		return false
	}
	if b.backfill {
		a, b, slot = b, a, other
	}
	if r := m.pool.records[slot].roster; r != nil && r.free >= 0 && b.players > r.free {
		return false
	}
	teams := m.rules.Level(level).Teams
	for i := range teams {
		if r := m.pool.records[slot].roster; r != nil {
			if r.sizes[i]+b.players <= teams[i].Max {
				return true
			}
			continue
		}
		for k := range teams {
			if i == k && a.players+b.players <= teams[i].Max || i != k && a.players <= teams[i].Max && b.players <= teams[k].Max {
				return true
			}
		}
	}
	return false
}

// against returns the rules that reject these tickets whatever other ticket joins, in the team assignment that the fewest rules reject.
func (m *Matcher) against(level int, tickets ...int32) []int {
	s := &m.search
	s.level, s.take = &m.plan.levels[level], which{}
	s.begin()
	for _, slot := range tickets {
		s.stand(slot, -1)
	}
	rules := s.standing()
	if len(s.level.byTeam) == 0 {
		return rules
	}
	var best []int
	found := false
	s.eachStanding(tickets, func() {
		if now := s.standing(); !found || len(now) < len(best) {
			best, found = now, true
		}
	})
	if !found {
		return rules
	}
	return best
}

// eachStanding tries the tickets on all teams.
func (s *search) eachStanding(tickets []int32, f func()) {
	s.begin()
	s.standNext(tickets, f)
}

func (s *search) standNext(tickets []int32, f func()) {
	if len(tickets) == 0 {
		f()
		return
	}
	slot := tickets[0]
	if s.m.pool.tickets[slot].backfill {
		s.stand(slot, -1)
		s.standNext(tickets[1:], f)
		s.joined = s.joined[:len(s.joined)-1]
		return
	}
	for team := range s.level.level.Teams {
		if s.m.pool.tickets[slot].players <= s.level.level.Teams[team].Max && !s.sameAsEarlier(team) {
			s.stand(slot, team)
			s.standNext(tickets[1:], f)
			s.joined = s.joined[:len(s.joined)-1]
		}
	}
}

// sameAsEarlier reports whether an equivalent empty team is tried instead of this one.
func (s *search) sameAsEarlier(team int) bool {
	taken := func(team int) bool {
		return slices.ContainsFunc(s.joined, func(j joined) bool { return int(j.team) == team || j.team < 0 })
	}
	for earlier := range team {
		if s.level.alike[earlier] == s.level.alike[team] && !taken(earlier) && !taken(team) {
			return true
		}
	}
	return false
}

// stand adds a ticket to a team whatever the rules say, and records which of its checks fail.
func (s *search) stand(slot int32, team int) {
	depth := len(s.joined)
	to := s.state(depth + 1)
	copy(to, s.state(depth))
	s.arena = s.arena[:s.arenaAt[depth]]
	s.failing = s.failing[:0]
	if depth > 0 {
		s.failing = append(s.failing, s.failed[depth-1]...)
	}
	u := s.unit(slot, 0)
	fail := func(c *check) {
		if c.soft {
			to[0] |= c.bit
		} else {
			s.failing = append(s.failing, c.rule)
		}
	}
	for i := range s.level.whole {
		if c := &s.level.whole[i]; !s.holds(c, to, u) {
			fail(c)
		}
	}
	byTeam := func(team int, u *unit) {
		for i := range s.level.byTeam {
			if c := &s.level.byTeam[i]; c.teams>>team&1 != 0 && !s.holds(c, to, u) {
				fail(c)
			}
		}
	}
	if r := s.m.pool.records[slot].roster; r != nil {
		for i := range r.parts {
			byTeam(r.parts[i].team, &unit{r.parts[i].row, r.parts[i].bits, r.parts[i].players})
		}
	} else if team >= 0 {
		byTeam(team, u)
	}
	s.failed = append(s.failed[:depth], slices.Clone(s.failing))
	s.joined = append(s.joined, joined{slot, int32(team)})
	s.arenaAt[depth+1] = len(s.arena)
}

// standing returns the rules that reject the tickets in the present team assignment.
func (s *search) standing() []int {
	depth := len(s.joined)
	rules := slices.Clone(s.failed[depth-1])
	for _, rule := range s.level.compounds {
		if s.ruleLost(rule, s.state(depth)[0]) {
			rules = append(rules, rule)
		}
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

// together returns the rules that reject the first match around the ticket that is large enough.
func (m *Matcher) together(slot int32, now domain.Time) []Objection {
	if m.rules.Large {
		return nil
	}
	counts := m.counters(slot)
	saved := slices.Clone(counts)
	s := &m.search
	s.whyNot, s.asked = nil, true
	m.around(slot, which{backfills: true}, now, false)
	s.asked = false
	copy(counts, saved)
	return s.whyNot
}
