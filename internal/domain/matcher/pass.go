package matcher

import (
	"math"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// stage is one iteration over the round's tickets.
type stage struct {
	news      bool // search around new requests
	backfills bool // and around backfills
	take      which
}

// stages orders new requests and backfills according to backfillPriority.
func (m *Matcher) stages() []stage {
	switch {
	case m.pool.backfills == 0:
		return stagesWithout
	case m.rules.Algorithm.BackfillPriority == ruleset.High:
		return stagesHigh
	case m.rules.Algorithm.BackfillPriority == ruleset.Low:
		return stagesLow
	default:
		return stagesNormal
	}
}

var (
	stagesWithout = []stage{{news: true, backfills: true}}
	stagesNormal  = []stage{{true, true, which{backfills: true}}, {news: true, take: which{backfills: true, required: true}}}
	stagesHigh    = []stage{{true, true, which{backfills: true, required: true}}, {news: true}}
	stagesLow     = []stage{{news: true}, {true, true, which{backfills: true, required: true}}}
)

// passSmall works on rounds until all are done or the bound on work is reached.
func (m *Matcher) passSmall(now domain.Time, until uint64) (proposals []Proposal) {
	q := &m.queue
	if q.len() == 0 {
		m.goOn(now, &proposals)
		return proposals
	}
	m.interleave()
	if m.stats.Passes%2 == 0 {
		m.nextHeavy(now, &proposals) // at least one, however many tickets arrive
	}
	for {
		if m.stats.Steps >= until && q.len() > 0 {
			m.stats.CutShort++
			return proposals
		}
		switch {
		case q.at < len(q.round):
			slot := q.round[q.at]
			q.at++
			if m.pool.tickets[slot].inThisRound() {
				m.look(slot, now, &proposals)
			}
		case q.stage+1 < len(q.stages) && len(q.round) > 0:
			q.at, q.stage = 0, q.stage+1
		default:
			if len(q.round) > 0 {
				m.endRound(now, &proposals)
			}
			if !m.nextRound() && !m.nextHeavy(now, &proposals) {
				return proposals
			}
		}
	}
}

// nextHeavy searches around the next ticket that needs the full budget. It returns false if there is none.
func (m *Matcher) nextHeavy(now domain.Time, proposals *[]Proposal) bool {
	q := &m.queue
	for len(q.heavy) > 0 {
		h := q.heavy[0]
		q.heavy = q.heavy[1:]
		t := &m.pool.tickets[h.slot]
		if t.shelf == nil || t.queued != notQueued || m.pool.records[h.slot].key != h.key {
			continue
		}
		key := failure{class: t.class, level: m.level(h.slot, now)}
		if _, failed := q.hopeless[key]; failed {
			continue
		}
		m.search.budget, t.searched = m.config.Budget, 0
		for t.shelf != nil && m.pool.records[h.slot].key == h.key && m.match(h.slot, h.take, now, proposals) {
		}
		if t.shelf == nil || m.pool.records[h.slot].key != h.key {
			return true
		}
		t.searched = int32(key.level + 1)
		q.hopeless[key] = struct{}{}
		m.noteEffort(h.slot, now)
		return true
	}
	return false
}

// look finds the matches around a ticket. Some may not contain it, because the oldest ticket of a match chooses the others.
func (m *Matcher) look(slot int32, now domain.Time, proposals *[]Proposal) {
	q := &m.queue
	st, t := q.stages[q.stage], &m.pool.tickets[slot]
	last := q.stage == len(q.stages)-1
	key := failure{t.class, t.searched, m.level(slot, now), q.stage}
	if st.news && !t.backfill || st.backfills && t.backfill {
		unsure, failed := q.failed[key]
		if !failed {
			m.search.budget = m.quickBudget()
			for t.inThisRound() && m.match(slot, st.take, now, proposals) {
			}
			unsure = m.search.gaveUp && m.search.budget < m.config.Budget
			if t.inThisRound() {
				q.failed[key] = unsure
				if !unsure {
					m.noteEffort(slot, now)
				}
			}
		}
		if unsure && t.inThisRound() {
			q.heavy = append(q.heavy, heavy{slot, m.pool.records[slot].key, st.take})
		}
	}
	if last && t.inThisRound() {
		t.leaveRound(key.level + 1)
	}
}

// match finds a match with this ticket and proposes the one that its oldest ticket finds. It returns false if there is none.
func (m *Matcher) match(slot int32, take which, now domain.Time, proposals *[]Proposal) bool {
	s := &m.search
	m.around(slot, take, now, true)
	if s.best.players == 0 {
		return false
	}
	m.proposeBest(slot, take, now, proposals)
	return true
}

// proposeBest proposes the match that was found around a ticket, or the match that its oldest ticket finds if that is no smaller.
func (m *Matcher) proposeBest(slot int32, take which, now domain.Time, proposals *[]Proposal) {
	s := &m.search
	m.kept.keep(&s.best)
	if elder := m.elder(m.kept.tickets); elder != slot {
		m.around(elder, take, now, false)
		if s.best.players >= m.kept.players {
			m.kept.keep(&s.best)
		}
	}
	*proposals = append(*proposals, m.propose(&m.kept))
}

func (f *found) keep(other *found) {
	f.tickets = append(f.tickets[:0], other.tickets...)
	f.players, f.level, f.full = other.players, other.level, other.full
}

// elder returns the ticket of a match that comes first among anchors.
func (m *Matcher) elder(tickets []joined) int32 {
	first := tickets[0].slot
	for _, j := range tickets[1:] {
		if m.anchorBefore(j.slot, first) {
			first = j.slot
		}
	}
	return first
}

func (m *Matcher) anchorBefore(a, b int32) bool {
	if p := m.rules.Algorithm.BackfillPriority; p != ruleset.Normal {
		if x, y := m.pool.tickets[a].backfill, m.pool.tickets[b].backfill; x != y {
			return x == (p == ruleset.High)
		}
	}
	return m.older(a, b)
}

// around searches around a ticket at every level that may have a match; fresh: only levels where it was not searched yet. The result is
// in search.best.
func (m *Matcher) around(slot int32, take which, now domain.Time, fresh bool) {
	s := &m.search
	s.best.players, s.best.full, s.gaveUp = 0, false, false
	top, lowest := m.levelsAround(slot, now, fresh)
	for k := top; k >= lowest && !s.best.full; k-- {
		s.run(slot, &m.plan.levels[k], now, m.startsAt(k, now), take)
	}
}

// levelsAround returns the levels that a match with a ticket may have; fresh: only levels where it was not searched yet. If the newest
// ticket decides the level, they are the ticket's own and all lower ones. If the oldest decides, they are its own and all higher ones,
// since an older ticket may join.
func (m *Matcher) levelsAround(slot int32, now domain.Time, fresh bool) (top, lowest int) {
	t, own := &m.pool.tickets[slot], m.level(slot, now)
	if !m.rules.Algorithm.OldestAge {
		if fresh {
			lowest = min(int(t.searched), own)
		}
		return own, lowest
	}
	top = own
	if oldest, ok := m.pool.ages.at(0, 0); ok && (!fresh || t.searched == 0) {
		top = max(top, m.level(oldest, now))
	}
	return top, own
}

// startsAt returns the range of start times for the tickets of a match at a level.
func (m *Matcher) startsAt(k int, now domain.Time) span {
	starts := span{math.MinInt64, math.MaxInt64}
	switch {
	case !m.rules.Algorithm.OldestAge && k > 0: // a start in the future counts as now
		starts.to = int64(now) - int64(m.rules.Waits()[k])*1000
	case m.rules.Algorithm.OldestAge && k+1 < len(m.plan.levels):
		starts.from = int64(now) - int64(m.rules.Waits()[k+1])*1000 + 1
	}
	return starts
}

// quickBudget returns the budget of a search of a round. In a small pool the oldest ticket decides, at any cost.
func (m *Matcher) quickBudget() int {
	if m.pool.ages.tickets <= m.exact {
		return m.config.Budget
	}
	return max(1, m.config.Budget/quickShare)
}

// endRound discards the round, and retries a few anchors whose search was exhausted. A small pool does that only when there is nothing
// else to do.
func (m *Matcher) endRound(now domain.Time, proposals *[]Proposal) {
	q := &m.queue
	for _, slot := range q.round {
		if t := &m.pool.tickets[slot]; t.inThisRound() {
			t.leaveRound(m.level(slot, now) + 1)
		}
	}
	q.round, q.at = q.round[:0], 0
	if m.pool.ages.tickets <= m.exact {
		return
	}
	for range min(retries, len(q.hard)) {
		m.goOn(now, proposals)
	}
}
