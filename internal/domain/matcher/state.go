package matcher

import (
	"math"
	"slices"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

// A candidate's state has a row of words for each ticket that has joined, so that removing the last ticket only drops its row. Lists of
// strings are in an arena that grows and shrinks in the same way; a word of the row refers to them.

// unit has players who join together: a ticket, or the players of a roster on one team.
type unit struct {
	row     []uint64
	bits    uint64
	players []ruleset.Player
}

func (s *search) state(depth int) []uint64 {
	w := s.level.words
	return s.words[depth*w : depth*w+w : depth*w+w]
}

// start initializes the state of a candidate without tickets.
func (s *search) start() {
	s.arena = s.arena[:0]
	st := s.state(0)
	clear(st)
	for _, checks := range [2][]check{s.level.whole, s.level.byTeam} {
		for i := range checks {
			switch c := &checks[i]; c.kind {
			case checkSpread:
				st[c.state], st[c.state+1] = math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1))
			case checkRegions:
				st[c.state], st[c.state+1] = ^uint64(0), ^uint64(0)
			case checkEqual, checkCommon, checkAccept:
				st[c.state] = ^uint64(0)
			}
		}
	}
}

// admit computes the part of the state with a ticket that does not depend on its team; `at` is the index of the failing check, -1 if
// compound rules reject.
func (s *search) admit(u *unit) (at int, ok bool) {
	depth := len(s.joined)
	to := s.state(depth + 1)
	copy(to, s.state(depth))
	s.arena = s.arena[:s.arenaAt[depth]]
	return s.join(to, u)
}

// join runs the checks that do not depend on the team on a state.
func (s *search) join(to []uint64, u *unit) (at int, ok bool) {
	before := to[0]
	for i := range s.level.whole {
		c := &s.level.whole[i]
		if s.holds(c, to, u) {
			continue
		}
		if !c.soft {
			return i, false
		}
		to[0] |= c.bit
	}
	if to[0] != before && s.hopeless(to[0]|to[s.level.teamWord]) {
		return -1, false
	}
	return 0, true
}

// admitTo adds the checks that depend on the team to the admitted state. first: not another part of the same roster.
func (s *search) admitTo(team int, u *unit, first bool) bool {
	depth := len(s.joined)
	to, w := s.state(depth+1), s.level.teamWord
	if first {
		copy(to[w:], s.state(depth)[w:])
	}
	before := to[w]
	for i := range s.level.byTeam {
		c := &s.level.byTeam[i]
		if c.teams>>team&1 == 0 || s.holds(c, to, u) {
			continue
		}
		if !c.soft {
			return false
		}
		to[w] |= c.bit
	}
	return to[w] == before || !s.hopeless(to[0]|to[w])
}

// holds adds players to a check's state, and reports whether the check still holds.
func (s *search) holds(c *check, st []uint64, u *unit) bool {
	switch c.kind {
	case checkSpread:
		low := min(math.Float64frombits(st[c.state]), math.Float64frombits(u.row[c.word]))
		high := max(math.Float64frombits(st[c.state+1]), math.Float64frombits(u.row[c.word+1]))
		st[c.state], st[c.state+1] = math.Float64bits(low), math.Float64bits(high)
		d := high - low
		return d <= c.most || ruleset.AtMost(ruleset.Difference(high, low, c.computed), c.most)
	case checkEqual:
		v := u.row[c.word]
		if st[c.state] == mixed {
			st[c.state] = v
		}
		return v != mixed && v == st[c.state]
	case checkRegions:
		if st[c.state] &= u.row[c.word]; st[c.state]&manyRegions != 0 && !s.otherRegion(c, st, u) {
			st[c.state] &^= manyRegions
		}
		return st[c.state] != 0
	case checkCount:
		st[c.state] += u.row[c.word]
		return float64(st[c.state]) <= c.most
	case checkLiteral:
		return u.bits>>c.word&1 != 0
	case checkDiffer:
		return s.differ(c, u)
	case checkCommon:
		return s.common(c, c.column, st, u) >= c.least
	case checkAccept:
		s.common(c, c.other, st, u)
		return s.accepted(c, st, u)
	case checkBlock:
		return !s.blocks(c, u)
	}
	return true
}

// members calls f for all players who have joined and count for a check.
func (s *search) members(c *check, f func(*ruleset.Player) bool) bool {
	for i := range s.joined {
		j := &s.joined[i]
		r := &s.m.pool.records[j.slot]
		if r.roster == nil {
			if j.team < 0 || c.teams>>j.team&1 != 0 {
				for p := range r.players {
					if !f(&r.players[p]) {
						return false
					}
				}
			}
			continue
		}
		for k := range r.roster.parts {
			part := &r.roster.parts[k]
			if c.teams>>part.team&1 != 0 {
				for p := range part.players {
					if !f(&part.players[p]) {
						return false
					}
				}
			}
		}
	}
	return true
}

func (s *search) differ(c *check, u *unit) bool {
	for i := range u.players {
		v := &u.players[i].Values[c.column]
		same := func(other *ruleset.Player) bool {
			o := &other.Values[c.column]
			return o.Number == v.Number && o.Text == v.Text
		}
		for k := range i {
			if same(&u.players[k]) {
				return false
			}
		}
		if !s.members(c, func(p *ruleset.Player) bool { return !same(p) }) {
			return false
		}
	}
	return true
}

// otherRegion keeps the regions that all accept among those that share a bit, and reports whether there is one.
func (s *search) otherRegion(c *check, st []uint64, u *unit) bool {
	return s.narrow(st, c.state+1, s.m.pool.regions.others(c.most, u.players)) > 0
}

// narrow intersects a state's list of strings with another list, or sets it to the first one; it returns the length.
func (s *search) narrow(st []uint64, word int, list []string) int {
	from := len(s.arena)
	if st[word] == ^uint64(0) {
		s.arena = append(s.arena, list...)
	} else {
		for _, text := range s.list(st[word]) {
			if slices.Contains(list, text) {
				s.arena = append(s.arena, text)
			}
		}
	}
	st[word] = uint64(from)<<32 | uint64(len(s.arena)-from)
	return len(s.arena) - from
}

// common keeps the strings that are in the lists of all players, and returns their number.
func (s *search) common(c *check, column int, st []uint64, u *unit) int {
	for i := range u.players {
		v := &u.players[i].Values[column]
		list := v.List
		if v.Kind == ruleset.String {
			list = []string{v.Text}
		}
		s.narrow(st, c.state, list)
	}
	return len(s.list(st[c.state]))
}

func (s *search) list(word uint64) []string {
	from, n := int(word>>32), int(word&0xffffffff)
	return s.arena[from : from+n]
}

// accepted reports whether every player's list has enough of the strings that are in the lists of all.
func (s *search) accepted(c *check, st []uint64, u *unit) bool {
	accepted := s.list(st[c.state])
	enough := func(p *ruleset.Player) bool {
		v, n := &p.Values[c.column], 0
		if v.Kind == ruleset.String {
			if slices.Contains(accepted, v.Text) {
				n = 1
			}
			return n >= c.least
		}
		for _, text := range v.List {
			if slices.Contains(accepted, text) {
				n++
			}
		}
		return n >= c.least
	}
	for i := range u.players {
		if !enough(&u.players[i]) {
			return false
		}
	}
	return s.members(c, enough)
}

// blocks reports whether a player's list names too many of the players.
func (s *search) blocks(c *check, u *unit) bool {
	tooMany := func(p *ruleset.Player) bool {
		n := 0.0
		for _, text := range p.Values[c.column].List {
			named := slices.ContainsFunc(u.players, func(other ruleset.Player) bool { return other.ID == text })
			if named || !s.members(c, func(other *ruleset.Player) bool { return other.ID != text }) {
				n++
			}
		}
		return n > c.most
	}
	for i := range u.players {
		if len(u.players[i].Values[c.column].List) > 0 && tooMany(&u.players[i]) {
			return true
		}
	}
	return !s.members(c, func(p *ruleset.Player) bool { return len(p.Values[c.column].List) == 0 || !tooMany(p) })
}

// hopeless reports whether the failed soft checks make a compound rule fail, whatever ticket joins.
func (s *search) hopeless(fails uint64) bool {
	return slices.ContainsFunc(s.level.compounds, func(rule int) bool { return s.ruleLost(rule, fails) })
}

func (s *search) ruleLost(rule int, fails uint64) bool {
	return s.lost(s.level.level.Rules[rule].Form.(*ruleset.Compound).Statement, fails)
}

func (s *search) lost(st *ruleset.Statement, fails uint64) bool {
	switch st.Logic {
	case ruleset.LogicRule:
		if form, ok := s.level.level.Rules[st.Rule].Form.(*ruleset.Compound); ok {
			return s.lost(form.Statement, fails)
		}
		return s.level.rules[st.Rule].fails&fails != 0
	case ruleset.LogicAnd:
		return slices.ContainsFunc(st.Of, func(part *ruleset.Statement) bool { return s.lost(part, fails) })
	case ruleset.LogicOr:
		return !slices.ContainsFunc(st.Of, func(part *ruleset.Statement) bool { return !s.lost(part, fails) })
	}
	return false
}
