package matcher

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// hard is an anchor whose full search exhausted its budget without a match. When there is no other work, each pass continues one such
// anchor. Turns alternate between a random order, which finds matches that are not rare, and the search's own order from where it
// stopped, which ends with a match or the proof that there is none.
type hard struct {
	slot  int32
	key   uint64 // the slot may have been reused since
	own   int    // the ticket's level when its search gave up
	turns int
	level int      // at which the search in order continues; -1: it is complete
	path  []joined // where it continues; nil: at the beginning
	keys  []uint64 // of the path's tickets
}

const (
	hardMax  = 1024 // anchors to continue
	turnsMax = 400  // of an anchor, until something changes in the pool: 8,000,000 evaluations
	restarts = 4    // orders tried in a turn, each with its part of the budget
)

// Effort is how far the search around a ticket went.
type Effort uint8

const (
	Searched  Effort = iota // complete, as far as is known
	Continued               // the search exhausted its budget, and continues when there is no other work
	GivenUp                 // the search was continued as often as is allowed
)

// noteEffort records the outcome of a full search around a ticket that found no match.
func (m *Matcher) noteEffort(slot int32, now domain.Time) {
	q, t := &m.queue, &m.pool.tickets[slot]
	listed := t.effort == Continued
	switch own := m.level(slot, now); {
	case !m.search.gaveUp && !listed:
		t.effort = Searched
	case m.search.gaveUp && !listed && len(q.hard) < hardMax:
		t.effort = Continued
		q.hard = append(q.hard, hard{slot: slot, key: m.pool.records[slot].key, own: own, level: unknownLevel})
	}
}

// unknownLevel marks an anchor without a search in order so far.
const unknownLevel = -2

// goOn gives the next exhausted anchor another budget.
func (m *Matcher) goOn(now domain.Time, proposals *[]Proposal) {
	q := &m.queue
	for len(q.hard) > 0 {
		h := q.hard[0]
		q.hard = q.hard[1:]
		t := &m.pool.tickets[h.slot]
		if t.shelf == nil || m.pool.records[h.slot].key != h.key {
			continue
		}
		if own := m.level(h.slot, now); own != h.own {
			h = hard{slot: h.slot, key: h.key, own: own, level: unknownLevel}
		}
		m.stats.Continued++
		take := which{backfills: m.rules.Algorithm.BackfillPriority != ruleset.Low}
		if m.continueSearch(&h, take, now) {
			t.effort = Searched
			m.proposeBest(h.slot, take, now, proposals)
			if t.shelf != nil && m.pool.records[h.slot].key == h.key { // the oldest ticket of the match chose others
				m.enqueue(h.slot)
			}
			return
		}
		switch h.turns++; {
		case h.level < 0 && h.level != unknownLevel:
			t.effort = Searched
		case h.turns == turnsMax:
			t.effort = GivenUp
		default:
			q.hard = append(q.hard, h)
		}
		return
	}
}

// continueSearch is one turn of an anchor. It returns true if search.best has a match.
func (m *Matcher) continueSearch(h *hard, take which, now domain.Time) bool {
	if h.turns%2 == 0 {
		return m.otherOrders(h, take, now)
	}
	s := &m.search
	s.best.players, s.best.full, s.budget = 0, false, m.config.Budget
	top, lowest := m.levelsAround(h.slot, now, false)
	if h.level == unknownLevel {
		h.level, h.path = top, nil
	}
	for h.level >= lowest {
		if !m.stillThere(h) {
			h.path = nil
		}
		s.resume = h.path
		s.run(h.slot, &m.plan.levels[h.level], now, m.startsAt(h.level, now), take)
		if s.best.players > 0 {
			return true
		}
		if s.exhausted {
			h.path, h.keys = slices.Clone(s.stopped), h.keys[:0]
			for _, j := range h.path {
				h.keys = append(h.keys, m.pool.records[j.slot].key)
			}
			return false
		}
		h.level, h.path = h.level-1, nil
	}
	h.level = -1
	return false
}

// stillThere reports whether the tickets of a path are all in the pool. Tickets that arrived meanwhile do not matter, because their own
// searches find the matches with them.
func (m *Matcher) stillThere(h *hard) bool {
	for i, j := range h.path {
		if m.pool.tickets[j.slot].shelf == nil || m.pool.records[j.slot].key != h.keys[i] {
			return false
		}
	}
	return true
}

// otherOrders tries a few random orders.
func (m *Matcher) otherOrders(h *hard, take which, now domain.Time) bool {
	s := &m.search
	s.budget = max(1, m.config.Budget/restarts)
	for i := range restarts {
		s.shuffle = mix(mix(mix(m.seed, h.key), uint64(h.turns)), uint64(i)) | 1
		m.around(h.slot, take, now, false)
		s.shuffle = 0
		if s.best.players > 0 || !s.gaveUp {
			break
		}
	}
	s.budget = m.config.Budget
	return s.best.players > 0
}

// resumeAt returns the place in seq from which tickets are tried: the first, or the one at which the continued search stopped.
func (s *search) resumeAt(pos int) int {
	depth := len(s.joined)
	if depth >= len(s.resume) {
		return pos
	}
	wanted := s.resume[depth].slot
	if depth == len(s.resume)-1 {
		s.resume = nil
	}
	for i := pos; ; i++ {
		slot, ok := s.at(i)
		if !ok { // the ticket has left the pool
			s.resume = nil
			return pos
		}
		if slot == wanted {
			return i
		}
	}
}

// resumeTeam returns the team of the next ticket when the search stopped; -1: try all.
func (s *search) resumeTeam() int {
	if depth := len(s.joined); depth < len(s.resume)-1 {
		return int(s.resume[depth].team)
	}
	return -1
}

// effortOf returns how far the search around a ticket went, or around one of its class, which counts for all of them.
func (m *Matcher) effortOf(slot int32) (e Effort, turns int) {
	class := m.pool.tickets[slot].class
	for i := range m.queue.hard {
		h := &m.queue.hard[i]
		if t := &m.pool.tickets[h.slot]; t.shelf != nil && t.class == class && m.pool.records[h.slot].key == h.key {
			return Continued, h.turns
		}
	}
	return m.pool.tickets[slot].effort, 0
}
