package matcher

import (
	"github.com/musterhq/muster/internal/domain"
)

// search looks for a match around one ticket, the anchor, at one level. Its first walk through the pool is greedy and takes every ticket
// that fits. If that gives no full match, it backtracks within a budget. It keeps the match with the most players, and of several such
// matches the one whose tickets come first.
type search struct {
	m      *Matcher
	level  *levelPlan
	now    domain.Time
	take   which
	anchor int32

	walk   walk
	sorter sorter
	seq    []int32 // tickets that are compatible with the anchor, in order, as far as they were needed
	before []int32 // players in seq before each place
	loaded bool    // seq is complete
	total  int32   // when loaded: players in seq

	joined  []joined
	words   []uint64 // the state of each depth
	base    []uint64 // the state of the anchor alone
	scratch []uint64
	arena   []string // of lists of strings
	arenaAt []int    // its length at each depth
	sizes   []int32  // of teams
	players int32
	missing int32 // players that teams lack to their minimum, in all
	target  int32 // players of a full match
	roster  *roster
	held    int32 // players of the roster

	back      bool   // the greedy walk is over: backtracking
	spent     int    // evaluations since
	budget    int    // of them
	exhausted bool   // the budget is used up
	gaveUp    bool   // so was that of some level around this anchor
	shuffle   uint64 // a seed: try tickets in a random order, for a search that was exhausted before

	resume  []joined // where the search continues; see stopped
	stopped []joined // of an exhausted search: the candidate, followed by the ticket to try next

	best  found
	cand  candidate
	units [2]unit
	seats *search // for other team assignments of the same tickets

	// For explanations only: the rules that reject the candidate at each depth, and on request those that rejected the first large enough
	// candidate.
	failing []int
	failed  [][]int
	whyNot  []Objection
	asked   bool
}

// joined is a ticket in the candidate.
type joined struct {
	slot int32
	team int32 // -1: a backfill, whose players have their teams
}

// found is a match; no match if it has no players.
type found struct {
	tickets []joined
	players int32
	level   int
	full    bool
}

// span is the range of start times for the tickets of a search, both ends included.
type span struct{ from, to int64 }

// run searches around an anchor for a match better than best.
func (s *search) run(anchor int32, level *levelPlan, now domain.Time, starts span, take which) {
	resume := s.resume
	s.resume = nil
	s.level, s.now, s.take, s.anchor = level, now, take, anchor
	s.m.stats.Searches++
	s.begin()
	t := &s.m.pool.tickets[anchor]
	if t.players > level.level.Slots {
		return
	}
	if !t.backfill && s.target < level.level.Minimum {
		return // too few slots are left beside those that stay free
	}
	at, ok := s.admit(s.unit(anchor, 0))
	if !ok {
		s.count(at, false, s.state(1)[0])
		return
	}
	s.walk.begin(s.m, anchor, level, starts, take)
	s.m.stats.Steps += uint64(8 + len(s.walk.cursors))
	s.countOutside()
	if s.walk.players+int64(t.players) < int64(level.level.Minimum) {
		return
	}
	copy(s.base, s.state(1))
	if len(s.m.plan.sorts) > 0 {
		s.joined = append(s.joined, joined{anchor, -1})
		s.sortWalk()
		s.joined = s.joined[:0]
	}
	if s.shuffle != 0 {
		s.shuffleAll()
	}
	s.resume, s.back = resume, len(resume) > 0
	s.place(anchor, 0)
	s.resume = nil
}

// begin empties the candidate, and makes the buffers large enough for the level.
func (s *search) begin() {
	deepest := int(s.m.rules.PlayersMax) + 2
	if need := deepest * s.level.words; len(s.words) < need {
		s.words = make([]uint64, need)
	}
	if len(s.base) < s.level.words {
		s.base, s.scratch = make([]uint64, s.level.words), make([]uint64, s.level.words)
	}
	if len(s.arenaAt) < deepest {
		s.arenaAt = make([]int, deepest)
	}
	if len(s.sizes) != len(s.level.level.Teams) {
		s.sizes = make([]int32, len(s.level.level.Teams))
	}
	clear(s.sizes)
	s.seq, s.before, s.loaded, s.total = s.seq[:0], s.before[:0], false, 0
	s.joined, s.players, s.roster, s.held = s.joined[:0], 0, nil, 0
	s.back, s.spent, s.exhausted = false, 0, false
	s.missing, s.target = s.level.level.Minimum, s.level.target
	if s.take.required {
		s.target = s.level.level.Slots
	}
	s.start()
}

// unit fills one of the search's units with a ticket.
func (s *search) unit(slot int32, which int) *unit {
	u := &s.units[which]
	u.row, u.bits, u.players = s.m.row(slot), s.m.pool.tickets[slot].literals, s.m.pool.records[slot].players
	return u
}

// at returns the i-th ticket that is compatible with the anchor.
func (s *search) at(i int) (slot int32, ok bool) {
	for i >= len(s.seq) {
		if len(s.m.plan.sorts) > 0 {
			if slot, ok = s.nextSorted(); !ok {
				return 0, false
			}
			s.push(slot)
			continue
		}
		if s.loaded {
			return 0, false
		}
		if slot, ok = s.walk.next(); !ok {
			s.loaded = true
			return 0, false
		}
		s.m.stats.Steps++
		if slot != s.anchor && s.goesWithAnchor(slot) {
			s.push(slot)
			s.total += s.m.pool.tickets[slot].players
		}
	}
	return s.seq[i], true
}

func (s *search) push(slot int32) {
	sum := int32(0)
	if n := len(s.seq); n > 0 {
		sum = s.before[n-1] + s.m.pool.tickets[s.seq[n-1]].players
	}
	s.seq, s.before = append(s.seq, slot), append(s.before, sum)
}

// goesWithAnchor reports whether no rule rejects the anchor together with another ticket. The matcher counts these calls as evaluations.
func (s *search) goesWithAnchor(slot int32) bool {
	joined, arena := s.joined, len(s.arena)
	s.joined = s.joined[:1]
	copy(s.scratch, s.base)
	at, ok := s.join(s.scratch, s.unit(slot, 1))
	s.joined, s.arena = joined, s.arena[:arena]
	s.count(at, ok, s.scratch[0])
	return ok
}

// extend adds tickets from a place on. It returns true if it found a full match.
func (s *search) extend(pos int) bool {
	if s.players >= s.target {
		full := s.judge()
		if !full && !s.back {
			full = s.rearrange()
		}
		s.back = true
		return full
	}
	var tried [8]uint64
	classes := 0
	for i := s.resumeAt(pos); ; i++ {
		slot, ok := s.at(i)
		if !ok {
			break
		}
		t := &s.m.pool.tickets[slot]
		again := s.back
		if again {
			if s.spent >= s.budget {
				s.exhausted, s.gaveUp = true, true
				s.m.stats.Exhausted++
				s.stopped = append(append(s.stopped[:0], s.joined...), joined{slot, -1})
				return false
			}
			s.spent++
			s.m.stats.Steps++
			if s.loaded && s.players+s.total-s.before[i] < max(s.best.players+1, s.level.level.Minimum) {
				break
			}
			if contains(tried[:min(classes, len(tried))], t.class) {
				continue
			}
		}
		if s.players+t.players > s.target && !t.backfill {
			continue
		}
		if s.place(slot, i+1) {
			return true
		}
		s.resume = nil // its path is complete
		if s.exhausted {
			return false
		}
		tried[classes%len(tried)] = t.class
		classes++
	}
	if s.missing == 0 && s.players > s.best.players {
		s.judge()
	}
	s.back = true
	return false
}

func contains(classes []uint64, class uint64) bool {
	for _, c := range classes {
		if c == class {
			return true
		}
	}
	return false
}

// place tries a ticket on every team, the one with the most open slots first, and continues from each.
func (s *search) place(slot int32, next int) bool {
	if s.m.pool.tickets[slot].backfill {
		return s.placeRoster(slot, next)
	}
	u := s.unit(slot, 0)
	if _, ok := s.admit(u); !ok {
		return false
	}
	t := &s.m.pool.tickets[slot]
	teams, from := s.m.fitsAt(s.level, t), s.resumeTeam()
	for teams != 0 {
		team := s.emptiest(teams, t.players)
		if team < 0 {
			return false
		}
		teams &^= 1 << team
		if s.sizes[team] == 0 && !(s.roster == nil && s.take.backfills && s.m.pool.backfills > 0) {
			teams &^= s.alikeEmpty(team) // with a roster the teams differ
		}
		if from >= 0 && team != from {
			continue // it was tried before the search stopped
		}
		from = -1
		if !s.seat(slot, team) {
			continue
		}
		if s.extend(next) {
			return true
		}
		s.unseat(slot, team)
		if s.exhausted {
			return false
		}
	}
	return false
}

// emptiest returns the team with the most open slots of those with enough; -1 if none has enough.
func (s *search) emptiest(teams uint64, players int32) int {
	best, most := -1, players-1
	for i, size := range s.level.level.Teams {
		if open := size.Max - s.sizes[i]; teams>>i&1 != 0 && open > most {
			best, most = i, open
		}
	}
	return best
}

// alikeEmpty returns the other empty teams that no rule distinguishes from this empty one.
func (s *search) alikeEmpty(team int) (teams uint64) {
	alike := s.level.alike
	for i := range alike {
		if alike[i] == alike[team] && s.sizes[i] == 0 {
			teams |= 1 << i
		}
	}
	return teams
}

// seat puts an admitted ticket on a team, unless a rule or the other teams' minimums prevent it.
func (s *search) seat(slot int32, team int) bool {
	t := &s.m.pool.tickets[slot]
	size := s.level.level.Teams[team]
	lack := min(t.players, max(0, size.Min-s.sizes[team]))
	if s.missing-lack > s.target-s.players-t.players {
		return false // the others could not reach their minimum any more
	}
	if len(s.level.byTeam) > 0 && !s.admitTo(team, s.unit(slot, 0), true) {
		return false
	}
	s.missing -= lack
	s.sizes[team] += t.players
	s.players += t.players
	s.joined = append(s.joined, joined{slot, int32(team)})
	s.arenaAt[len(s.joined)] = len(s.arena)
	return true
}

func (s *search) unseat(slot int32, team int) {
	t := &s.m.pool.tickets[slot]
	s.joined = s.joined[:len(s.joined)-1]
	s.sizes[team] -= t.players
	s.players -= t.players
	s.missing += min(t.players, max(0, s.level.level.Teams[team].Min-s.sizes[team]))
}

// placeRoster is place for a backfill.
func (s *search) placeRoster(slot int32, next int) bool {
	t, r := &s.m.pool.tickets[slot], s.m.pool.records[slot].roster
	newcomers, target, missing := s.players, s.level.level.Slots, int32(0)
	if r.free >= 0 {
		target = min(target, t.players+r.free)
	}
	for i, size := range s.level.level.Teams {
		if s.sizes[i]+r.sizes[i] > size.Max {
			return false
		}
		missing += max(0, size.Min-s.sizes[i]-r.sizes[i])
	}
	if s.roster != nil || newcomers+t.players > target || missing > target-newcomers-t.players || target == t.players {
		return false
	}
	if _, ok := s.admit(s.unit(slot, 0)); !ok {
		return false
	}
	for i := range r.parts {
		part := &r.parts[i]
		u := unit{part.row, part.bits, part.players}
		if len(s.level.byTeam) > 0 && !s.admitTo(part.team, &u, i == 0) {
			return false
		}
	}
	wasTarget, wasMissing := s.target, s.missing
	s.roster, s.held, s.target, s.missing = r, t.players, target, missing
	for i, n := range r.sizes {
		s.sizes[i] += n
	}
	s.players += t.players
	s.joined = append(s.joined, joined{slot, -1})
	s.arenaAt[len(s.joined)] = len(s.arena)
	if s.extend(next) {
		return true
	}
	s.joined = s.joined[:len(s.joined)-1]
	for i, n := range r.sizes {
		s.sizes[i] -= n
	}
	s.players -= t.players
	s.roster, s.held, s.target, s.missing = nil, 0, wasTarget, wasMissing
	return false
}

// shuffleAll loads all tickets and puts them into an order that depends on the seed alone.
func (s *search) shuffleAll() {
	s.joined = append(s.joined, joined{s.anchor, -1})
	for i := 0; ; i++ {
		if _, ok := s.at(i); !ok {
			break
		}
	}
	s.joined = s.joined[:0]
	h := s.shuffle
	for i := len(s.seq) - 1; i > 0; i-- {
		h = mix(h, uint64(i))
		j := h % uint64(i+1)
		s.seq[i], s.seq[j] = s.seq[j], s.seq[i]
	}
	all := s.seq
	s.seq, s.before = s.seq[:0], s.before[:0]
	for _, slot := range all {
		s.push(slot)
	}
}
