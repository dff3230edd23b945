package matcher

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
)

// queue is the tickets around which something may have become possible: those that are new, and those that reached a
// wait. A match that was not possible before has one of them, so nobody else needs a look. They are looked at in rounds,
// the oldest first; a round may take several passes, and what comes meanwhile is for the next one.
type queue struct {
	round  []int32
	at     int // in round
	stage  int // of stages
	stages []stage
	coming []int32
	now    domain.Time // up to which waits have been reached
	failed map[failure]struct{}
	hard   []int32 // anchors whose search was exhausted and that may deserve another order
}

// failure says that no ticket of a class has a match, so that of many alike only one is looked at in a round.
type failure struct {
	class    uint64
	searched int32
	level    int
	stage    int
}

func (q *queue) len() int { return len(q.round) - q.at + len(q.coming) }

// exactPool is the size up to which a change makes the matcher look around all tickets anew, as the documented algorithm
// does. Above, who gets the last free ticket of several that could may depend on who came last.
const exactPool = 64

// retries is how many exhausted anchors a round tries in another order.
const retries = 2

// queued says where a ticket is in the queue.
type queued uint8

const (
	notQueued queued = iota
	inComing
	inRound
	inBoth // it reached a wait while its round was under way
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

// leaveRound takes a ticket off the round.
func (t *ticket) leaveRound(searched int) {
	t.searched = int32(searched)
	if t.queued == inBoth {
		t.queued, t.searched = inComing, 0
	} else {
		t.queued = notQueued
	}
}

// reachWaits queues the tickets that reached a wait since the last pass.
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

// nextRound takes what came in the meantime; false when there is nothing.
func (m *Matcher) nextRound() bool {
	q := &m.queue
	q.round, q.coming, q.at, q.stage = q.coming, q.round[:0], 0, 0
	m.rounds++
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
	live := q.round[:0]
	for _, slot := range q.round {
		if t := &m.pool.tickets[slot]; t.queued == inComing { // else it has left, and came twice
			t.queued = inRound
			live = append(live, slot)
		}
	}
	q.round = live
	slices.SortFunc(q.round, func(a, b int32) int {
		if m.older(a, b) {
			return -1
		}
		return 1
	})
	clear(q.failed)
	if q.failed == nil {
		q.failed = map[failure]struct{}{}
	}
	return true
}
