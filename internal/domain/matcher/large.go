package matcher

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
)

// large makes matches of more than 40 players: few rules, a batch for each location, teams filled in the documented order and then
// balanced. It does not backtrack. A round covers the whole pool, level by level and batch by batch. If it takes several passes, each
// continues where the one before was cut short. Every batch once has a whole pass's work, and if that is not enough, there is another round.
type large struct {
	now   domain.Time
	until uint64
	level *levelPlan
	cut   bool // the work was used up
	sizes []int32
	match found

	// The place in the round.
	at    int               // level
	done  map[batchKey]bool // batches of this level
	short bool              // the work was not enough for a batch
	turn  int               // such rounds in a row: each starts at another place in the batches
}

func (m *Matcher) passLarge(now domain.Time, steps int) (proposals []Proposal) {
	g, q := &m.large, &m.queue
	if len(q.round) == 0 {
		if q.round, q.coming = m.live(q.coming), q.round[:0]; len(q.round) == 0 {
			return nil
		}
		g.at, g.done, g.short = len(m.plan.levels)-1, map[batchKey]bool{}, false
	}
	g.now = now
	until, begun := m.stats.Steps+uint64(steps), false
	for ; g.at >= 0; g.at-- {
		tickets := m.reached(g.at, now)
		if m.countPlayers(tickets) < m.plan.levels[g.at].level.Minimum {
			clear(g.done) // the pass before may have made matches of this level
			continue
		}
		g.level = &m.plan.levels[g.at]
		for key, batch := range m.batches(tickets, g.done) {
			g.until = until
			if !begun { // to find the batches may have taken all of the work, and each ticket needs some
				g.until = max(until, m.stats.Steps+uint64(max(steps, (len(g.level.whole)+2)*len(batch))))
			}
			if g.cut = m.stats.Steps >= g.until; !g.cut {
				m.formAll(batch, &proposals)
			}
			if !g.cut || !begun { // otherwise the next pass begins with it
				begun, g.done[key], g.short = true, true, g.short || g.cut
			}
			if g.cut {
				m.stats.CutShort++
				return proposals
			}
		}
		clear(g.done)
	}
	m.endLarge()
	return proposals
}

// endLarge ends a round.
func (m *Matcher) endLarge() {
	g, q := &m.large, &m.queue
	for _, slot := range q.round {
		switch t := &m.pool.tickets[slot]; {
		case t.queued == inRound && g.short:
			t.queued = inComing
			q.coming = append(q.coming, slot)
		case t.inThisRound():
			t.leaveRound(0)
		}
	}
	q.round = q.round[:0]
	if g.turn++; !g.short {
		g.turn = 0
	}
}

// reached returns the tickets that a match of a level may contain, backfills first, then by age.
func (m *Matcher) reached(level int, now domain.Time) []int32 {
	waits := m.rules.Waits()
	var first, rest []int32
	for _, chunk := range m.pool.ages.chunks {
		for _, slot := range chunk {
			waited := age(m.pool.tickets[slot].start, now)
			if m.rules.Algorithm.OldestAge {
				if level+1 < len(waits) && waited >= int64(waits[level+1]) {
					continue
				}
			} else if waited < int64(waits[level]) {
				continue
			}
			if m.pool.tickets[slot].backfill {
				first = append(first, slot)
			} else {
				rest = append(rest, slot)
			}
		}
	}
	m.stats.Steps += uint64(len(first) + len(rest))
	return append(first, rest...)
}

func (m *Matcher) countPlayers(tickets []int32) (n int32) {
	for _, slot := range tickets {
		n += m.pool.tickets[slot].players
	}
	return n
}

// formAll makes matches of a batch until it contains no more.
func (m *Matcher) formAll(batch []int32, proposals *[]Proposal) {
	for {
		batch = slices.DeleteFunc(batch, func(slot int32) bool { return m.pool.tickets[slot].shelf == nil })
		if m.countPlayers(batch) < m.large.level.level.Minimum || !m.window(batch, 0, nil) {
			return
		}
		*proposals = append(*proposals, m.propose(&m.large.match))
	}
}

// form fills teams with the tickets of a batch, in its order, and keeps the match if it is legal.
func (m *Matcher) form(batch []int32) bool {
	news := slices.IndexFunc(batch, func(slot int32) bool { return !m.pool.tickets[slot].backfill })
	if news < 0 {
		return false
	}
	for _, backfill := range batch[:news] {
		if m.fill(backfill, batch[news:]) {
			return true
		}
	}
	return m.fill(-1, batch[news:])
}

// fill fills teams in the order of docs/spec/flexmatch.md#large-matches: first teams below their minimum, of these the one with the most
// open slots, then the team with the most open slots. It skips a ticket that fits nowhere.
func (m *Matcher) fill(backfill int32, news []int32) bool {
	g := &m.large
	level := g.level.level
	g.match.tickets, g.match.players, g.match.level = g.match.tickets[:0], 0, g.level.index
	if len(g.sizes) != len(level.Teams) {
		g.sizes = make([]int32, len(level.Teams))
	}
	clear(g.sizes)
	target := g.level.target
	if backfill >= 0 {
		r := m.pool.records[backfill].roster
		copy(g.sizes, r.sizes)
		g.match.players = m.pool.tickets[backfill].players
		g.match.tickets = append(g.match.tickets, joined{backfill, -1})
		target = level.Slots
		if r.free >= 0 {
			target = min(target, g.match.players+r.free)
		}
		for i, size := range level.Teams {
			if g.sizes[i] > size.Max {
				return false
			}
		}
	}
	smallest := int32(1) // size of a party that found no room: no other of this size will
	full := make([]bool, 0, 16)
	for _, slot := range news {
		if g.match.players >= target {
			break
		}
		m.stats.Steps++
		players := m.pool.tickets[slot].players
		if int(players) < len(full) && full[players] || g.match.players+players > target {
			continue
		}
		team := m.teamFor(players)
		if team < 0 {
			for len(full) <= int(players) {
				full = append(full, false)
			}
			full[players] = true
			if players == smallest {
				break
			}
			continue
		}
		g.sizes[team] += players
		g.match.players += players
		g.match.tickets = append(g.match.tickets, joined{slot, int32(team)})
	}
	return m.filled(backfill)
}

func (m *Matcher) teamFor(players int32) int {
	best, most, needed := -1, int32(0), false
	for i, size := range m.large.level.level.Teams {
		open, needs := size.Max-m.large.sizes[i], m.large.sizes[i] < size.Min
		if open < players {
			continue
		}
		if best < 0 || needs && !needed || needs == needed && open > most {
			best, most, needed = i, open, needs
		}
	}
	return best
}

// filled reports whether fill has made a match.
func (m *Matcher) filled(backfill int32) bool {
	g := &m.large
	if len(g.match.tickets) == 0 || backfill >= 0 && len(g.match.tickets) == 1 {
		return false
	}
	for i, size := range g.level.level.Teams {
		if g.sizes[i] < size.Min {
			return false
		}
	}
	level := m.ageLevel(g.match.tickets, g.now)
	if level == g.level.index {
		return true
	}
	// The ages of its tickets give another level than this one, which judges.
	g.match.level = level
	l := &m.plan.levels[level]
	if backfill < 0 && g.match.players > l.target {
		return false
	}
	m.fillCandidate(&m.search.cand, g.match.tickets)
	m.stats.Steps += uint64(g.match.players) * 10
	return l.level.Accepts(&m.search.cand.Candidate)
}
