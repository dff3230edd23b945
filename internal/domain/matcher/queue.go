package matcher

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
)

// queue has the tickets around which a match may have become possible: new tickets, and those that reached a wait time. A match that was
// not possible before contains one of them, so no other ticket needs a search. They are searched in rounds, the oldest first; if a round
// takes several passes, tickets that arrive meanwhile alternate with the rest of it.
type queue struct {
	round    []int32
	at       int // in round
	stage    int // of stages
	stages   []stage
	coming   []int32
	now      domain.Time          // wait times up to it have been reached
	failed   map[failure]bool     // true: by a quick search only
	heavy    []heavy              // where a quick search gave up, for times without other work
	hopeless map[failure]struct{} // of heavy
	hard     []hard               // anchors whose full search was exhausted too: see goOn
}

// heavy is an anchor that needs the full budget. Its slot may have been reused since.
type heavy struct {
	slot int32
	key  uint64
	take which
}

// failure records that no ticket of a class has a match, so that a round searches around only one of many equal tickets.
type failure struct {
	class    uint64
	searched int32
	level    int
	stage    int
}

func (q *queue) len() int { return len(q.round) - q.at + len(q.coming) + len(q.heavy) }

// exactPool is the pool size up to which every change makes the matcher search around all tickets again, like the documented algorithm.
// In larger pools, which of several tickets gets the last free partner may depend on which arrived last.
const exactPool = 64

// In a round a search gets one quickShare-th of its budget, so that tickets that need more do not delay those that need less.
const quickShare = 10

// retries is the number of exhausted anchors that the end of a round continues.
const retries = 2

// queued is a ticket's place in the queue.
type queued uint8

const (
	notQueued queued = iota
	inComing
	inRound
	inBoth // it reached a wait time during its round
)

func (m *Matcher) enqueue(slot int32) {
	t := &m.pool.tickets[slot]
	switch {
	case t.shelf == nil || t.queued == inComing || t.queued == inBoth:
		return
	case t.queued == inRound:
		t.queued = inBoth
	default:
		t.queued = inComing
	}
	m.queue.coming = append(m.queue.coming, slot)
}

// inThisRound reports whether a slot that the round names still holds the ticket that it meant.
func (t *ticket) inThisRound() bool { return t.queued == inRound || t.queued == inBoth }

// leaveRound removes a ticket from the round.
func (t *ticket) leaveRound(searched int) {
	t.searched = int32(searched)
	if t.queued == inBoth {
		t.queued, t.searched = inComing, 0
	} else {
		t.queued = notQueued
	}
}

// reachWaits queues the tickets that reached a wait time since the last pass.
func (m *Matcher) reachWaits(now domain.Time) {
	if now <= m.queue.now {
		return
	}
	waits := m.rules.Waits()[1:]
	if m.queue.now == 0 {
		waits = nil // the first pass: all are new
	}
	for _, wait := range waits {
		ms := domain.Time(wait) * 1000
		chunk, at := m.firstAfter(&m.pool.ages, int64(m.queue.now-ms), false)
		for {
			slot, ok := m.pool.ages.at(chunk, at)
			if !ok || m.pool.tickets[slot].start > now-ms {
				break
			}
			m.enqueue(slot)
			chunk, at = m.pool.ages.next(chunk, at)
		}
	}
	m.queue.now = now
}

// nextRound takes the tickets that arrived meanwhile. It returns false if there are none.
func (m *Matcher) nextRound() bool {
	q := &m.queue
	q.round, q.coming, q.at, q.stage = q.coming, q.round[:0], 0, 0
	if len(q.round) == 0 {
		return false
	}
	q.stages = m.stages()
	if m.pool.ages.tickets <= m.exact {
		for _, chunk := range m.pool.ages.chunks {
			for _, slot := range chunk {
				m.pool.tickets[slot].searched = 0
				m.enqueue(slot)
			}
		}
		q.round, q.coming = append(q.round, q.coming...), q.coming[:0]
	}
	q.round = m.live(q.round)
	m.sortByAge(q.round)
	clear(q.failed)
	clear(q.hopeless)
	if q.failed == nil {
		q.failed, q.hopeless = map[failure]bool{}, map[failure]struct{}{}
	}
	return true
}

// live moves the tickets that are still in the pool from those that were coming into a round. The two share memory.
func (m *Matcher) live(coming []int32) (round []int32) {
	round = coming[:0]
	for _, slot := range coming {
		if t := &m.pool.tickets[slot]; t.queued == inComing { // otherwise it has left, or is listed twice
			t.queued = inRound
			round = append(round, slot)
		}
	}
	return round
}

func (m *Matcher) sortByAge(slots []int32) {
	slices.SortFunc(slots, func(a, b int32) int {
		if m.older(a, b) {
			return -1
		}
		return 1
	})
}

// interleave alternates tickets that arrived since the last pass with the rest of that pass's round.
func (m *Matcher) interleave() {
	q := &m.queue
	if q.at >= len(q.round) || q.stage > 0 || len(q.coming) == 0 {
		return
	}
	var news []int32
	later := q.coming[:0]
	for _, slot := range q.coming {
		switch t := &m.pool.tickets[slot]; t.queued {
		case inComing:
			t.queued = inRound
			news = append(news, slot)
		case inBoth:
			later = append(later, slot)
		}
	}
	q.coming = later
	m.sortByAge(news)
	round, rest := slices.Clone(q.round[:q.at]), q.round[q.at:]
	for i := range max(len(news), len(rest)) {
		if i < len(news) {
			round = append(round, news[i])
		}
		if i < len(rest) {
			round = append(round, rest[i])
		}
	}
	q.round = round
}
