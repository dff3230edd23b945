package matcher

import (
	"math"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// candidate is what the reference evaluator reads, filled only when a rule needs it.
type candidate struct {
	ruleset.Candidate
	filled bool
	order  []joined
}

// judge keeps the present candidate if it is legal and the best so far. It returns true if the candidate is also full.
func (s *search) judge() bool {
	if s.missing > 0 || s.players <= s.best.players {
		return false
	}
	if s.roster != nil && len(s.joined) < 2 || s.roster == nil && s.take.required {
		return false
	}
	if s.roster == nil && s.players > s.level.target {
		return false
	}
	s.cand.filled = false
	level := s.m.ageLevel(s.joined, s.now)
	if legal := s.legal(level); !legal {
		return false
	}
	s.best.tickets = append(s.best.tickets[:0], s.joined...)
	s.best.players, s.best.level, s.best.full = s.players, level, s.full()
	return s.best.full
}

// full reports whether the search may stop with the candidate. A backfill whose game session has no more room is not a full match for a
// new ticket that might find a larger one.
func (s *search) full() bool {
	return s.players >= s.target && (s.roster == nil || s.joined[0].team < 0 || s.players >= s.level.target)
}

// legal judges the candidate at its own level, which is usually the level of the search; if not, all rules are evaluated again.
func (s *search) legal(level int) bool {
	if level != s.level.index {
		l := &s.m.plan.levels[level]
		if s.roster == nil && s.players > l.target {
			return false
		}
		s.fill()
		s.evaluated(s.cost(l.level.Rules))
		return l.level.Accepts(&s.cand.Candidate)
	}
	if s.asked && len(s.whyNot) == 0 {
		s.noteWhyNot()
	}
	legal := true
	for _, rule := range s.level.required {
		v := s.verdict(rule)
		s.countFinal(rule, v == ruleset.Holds)
		if v != ruleset.Holds {
			legal = false
			break
		}
	}
	return legal
}

// noteWhyNot records the rules that reject the candidate, for an explanation.
func (s *search) noteWhyNot() {
	for _, rule := range s.level.required {
		if s.verdict(rule) != ruleset.Holds {
			s.fill()
			s.whyNot = append(s.whyNot, Objection{rule, s.level.level.Reason(rule, &s.cand.Candidate)})
		}
	}
}

func (s *search) cost(rules []*ruleset.Rule) (cost int) {
	for _, r := range rules {
		cost += r.Cost
	}
	return cost
}

// evaluated counts evaluations of rules by the reference.
func (s *search) evaluated(cost int) {
	if s.back {
		s.spent += cost
	}
	s.m.stats.Evaluations += uint64(cost)
	s.m.stats.Steps += uint64(cost * 10)
}

// verdict returns the verdict of a rule on the complete candidate.
func (s *search) verdict(rule int) ruleset.Verdict {
	p := &s.level.rules[rule]
	r := s.level.level.Rules[rule]
	if form, ok := r.Form.(*ruleset.Compound); ok {
		return s.compound(form.Statement)
	}
	switch {
	case s.roster != nil && p.byTeam || !p.covered && p.quick == ruleset.General:
	case p.covered:
		st := s.state(len(s.joined))
		if (st[0]|st[s.level.teamWord])&p.fails != 0 {
			return ruleset.Fails
		}
		return ruleset.Holds
	case p.quick == ruleset.TeamSizes:
		shape, form := r.Shapes[0], r.Form.(*ruleset.Comparison)
		return verdictOf(form.Operation.Holds(float64(s.sizes[shape.Column]), float64(s.sizes[shape.Other]), false))
	case p.quick == ruleset.TeamMeans:
		if v, sure := s.teamMeans(&r.Shapes[0], r.Form.(*ruleset.Distance)); sure {
			return v
		}
	}
	s.fill()
	s.evaluated(r.Cost)
	return r.Check(&s.cand.Candidate)
}

func verdictOf(holds bool) ruleset.Verdict {
	if holds {
		return ruleset.Holds
	}
	return ruleset.Fails
}

// compound evaluates three-valued logic like the reference: the negation of undefined is undefined.
func (s *search) compound(st *ruleset.Statement) ruleset.Verdict {
	if st.Logic == ruleset.LogicRule {
		return s.verdict(st.Rule)
	}
	var count [3]int
	for _, part := range st.Of {
		count[s.compound(part)]++
	}
	holds, fails, undefined := count[ruleset.Holds], count[ruleset.Fails], count[ruleset.Undefined]
	switch {
	case st.Logic == ruleset.LogicNot && undefined == 0:
		return verdictOf(fails > 0)
	case st.Logic == ruleset.LogicAnd && fails > 0, st.Logic == ruleset.LogicXor && holds > 1:
		return ruleset.Fails
	case st.Logic == ruleset.LogicOr && holds > 0:
		return ruleset.Holds
	case undefined > 0:
		return ruleset.Undefined
	case st.Logic == ruleset.LogicAnd:
		return ruleset.Holds
	case st.Logic == ruleset.LogicXor:
		return verdictOf(holds == 1)
	default:
		return ruleset.Fails
	}
}

// teamMeans compares the teams' averages with the average of all. Its sums may round differently from the reference's, so near the bound
// its verdict is not sure.
func (s *search) teamMeans(shape *ruleset.Shape, form *ruleset.Distance) (v ruleset.Verdict, sure bool) {
	var sums [64]float64
	size := 0.0 // of all numbers: how sums of large ones round or overflow depends on their order
	var counts [64]int
	for _, j := range s.joined {
		r := &s.m.pool.records[j.slot]
		if r.roster != nil {
			for i := range r.roster.parts {
				part := &r.roster.parts[i]
				for p := range part.players {
					x := part.players[p].Values[shape.Column].Number
					sums[part.team], size = sums[part.team]+x, size+math.Abs(x)
				}
				counts[part.team] += len(part.players)
			}
			continue
		}
		for p := range r.players {
			x := r.players[p].Values[shape.Column].Number
			sums[j.team], size = sums[j.team]+x, size+math.Abs(x)
		}
		counts[j.team] += len(r.players)
	}
	total, players := 0.0, 0
	for _, team := range shape.Teams {
		if counts[team] == 0 {
			return ruleset.Undefined, true
		}
		total, players = total+sums[team], players+counts[team]
	}
	mean, worst := total/float64(players), 0.0
	for _, team := range shape.Teams {
		worst = max(worst, math.Abs(sums[team]/float64(counts[team])-mean))
	}
	margin := 1e-6 * max(1, math.Abs(mean), form.Bounds.Max, 1e-6*size)
	switch {
	case size > 1e300:
		return 0, false
	case worst < form.Bounds.Max-margin:
		return ruleset.Holds, true
	case worst > form.Bounds.Max+margin:
		return ruleset.Fails, true
	}
	return 0, false
}

// ageLevel returns the level of a candidate, by the age of its newest or its oldest ticket.
func (m *Matcher) ageLevel(joined []joined, now domain.Time) int {
	start := m.pool.tickets[joined[0].slot].start
	for _, j := range joined[1:] {
		if m.rules.Algorithm.OldestAge {
			start = min(start, m.pool.tickets[j.slot].start)
		} else {
			start = max(start, m.pool.tickets[j.slot].start)
		}
	}
	return m.rules.LevelAt(age(start, now))
}

// fill converts the search's candidate to the reference's form.
func (s *search) fill() {
	if s.cand.filled {
		return
	}
	s.m.fillCandidate(&s.cand, s.joined)
}

// fillCandidate puts players on their teams, by the age of their tickets and then in the ticket's order.
func (m *Matcher) fillCandidate(c *candidate, tickets []joined) {
	if len(c.Teams) != len(m.rules.Teams) {
		c.Teams = make([][]ruleset.Player, len(m.rules.Teams))
	}
	for i := range c.Teams {
		c.Teams[i] = c.Teams[i][:0]
	}
	c.order = append(c.order[:0], tickets...)
	slices.SortFunc(c.order, func(a, b joined) int {
		if m.older(a.slot, b.slot) {
			return -1
		}
		return 1
	})
	for _, j := range c.order {
		r := &m.pool.records[j.slot]
		if r.roster == nil {
			c.Teams[j.team] = appendPlayers(c.Teams[j.team], r.players, j.slot)
			continue
		}
		for i := range r.roster.parts {
			part := &r.roster.parts[i]
			c.Teams[part.team] = appendPlayers(c.Teams[part.team], part.players, j.slot)
		}
	}
	c.filled = true
}

func appendPlayers(team, players []ruleset.Player, slot int32) []ruleset.Player {
	for i := range players {
		team = append(team, players[i])
		team[len(team)-1].Ticket = int(slot)
	}
	return team
}
