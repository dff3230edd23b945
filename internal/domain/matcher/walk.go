package matcher

import (
	"math"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

// walk yields the tickets that may be near an anchor, in order, so that a search in a crowded pool reads few of them. It merges those
// lists of the anchor's group that can contain such tickets.
type walk struct {
	m       *Matcher
	cursors []cursor // a heap, the next ticket on top
	from    int64    // range of start times, both included
	to      int64
	first   bool  // backfills before all others
	players int64 // in all its lists
	tickets int

	shelves   []*shelf // that it goes through
	width     int      // which cells
	low, high int64    // the first and the last
	ring      bool     // the nearest tickets come first instead of the walk's order: see sorter
}

// cursor is a place in a list.
type cursor struct {
	list      *ageList
	chunk, at int
	slot      int32
	start     int64
	backfill  bool
}

// which defines the tickets that a search may take besides the anchor.
type which struct {
	backfills bool // take them
	required  bool // only matches with one count
}

// begin finds the lists for an anchor.
func (w *walk) begin(m *Matcher, anchor int32, l *levelPlan, starts span, take which) {
	w.m, w.cursors, w.from, w.to, w.players, w.tickets = m, w.cursors[:0], starts.from, starts.to, 0, 0
	w.shelves = w.shelves[:0]
	w.ring = m.plan.ring && (!take.backfills || m.pool.backfills == 0)
	w.first = take.required || m.rules.Algorithm.BackfillPriority == ruleset.High
	t := &m.pool.tickets[anchor]
	if m.plan.near >= 0 {
		row := m.row(anchor)
		lowest, highest := math.Float64frombits(row[m.plan.near]), math.Float64frombits(row[m.plan.near+1])
		reach := l.spread + 2e-9*max(1, l.spread, math.Abs(lowest), math.Abs(highest)) // the rules' tolerance
		w.width = m.plan.widthFor(l.spread)
		w.low, w.high = cell(highest-reach, m.plan.widths[w.width]), cell(lowest+reach, m.plan.widths[w.width])
	}
	for _, s := range t.shelf.group.shelves {
		if s.backfill && (!take.backfills || t.backfill) {
			continue
		}
		if m.plan.near < 0 {
			w.add(&s.list, s.backfill)
			continue
		}
		w.shelves = append(w.shelves, s)
		w.addCells(s)
	}
	if !t.backfill { // its own list is among the added ones
		w.players -= int64(t.players)
	}
}

// manyCells is the number of cells from which iterating over all existing cells is cheaper.
const manyCells = 300

func (w *walk) addCells(s *shelf) {
	cells := s.widths[w.width]
	if w.high-w.low >= manyCells {
		w.ring = false
		for at, list := range cells { // in any order: the heap sorts them
			if w.low <= at && at <= w.high {
				w.add(list, s.backfill)
			}
		}
		return
	}
	for at := w.low; at <= w.high; at++ {
		if list := cells[at]; list != nil {
			w.add(list, s.backfill)
		}
	}
}

func (w *walk) add(list *ageList, backfill bool) {
	w.players += int64(list.players)
	w.tickets += list.tickets
	if w.ring {
		return
	}
	chunk, at := 0, 0
	if w.from > math.MinInt64 {
		chunk, at = w.m.firstAfter(list, w.from, true)
	}
	c := cursor{list: list, chunk: chunk, at: at, backfill: backfill}
	if w.load(&c) {
		w.cursors = append(w.cursors, c)
		w.up(len(w.cursors) - 1)
	}
}

// load reads the ticket at a cursor. It returns false at the end of the range.
func (w *walk) load(c *cursor) bool {
	slot, ok := c.list.at(c.chunk, c.at)
	if !ok {
		return false
	}
	c.slot, c.start = slot, int64(w.m.pool.tickets[slot].start)
	return c.start <= w.to
}

func (w *walk) next() (slot int32, ok bool) {
	if len(w.cursors) == 0 {
		return 0, false
	}
	c := &w.cursors[0]
	slot = c.slot
	c.chunk, c.at = c.list.next(c.chunk, c.at)
	if !w.load(c) {
		last := len(w.cursors) - 1
		w.cursors[0] = w.cursors[last]
		w.cursors = w.cursors[:last]
	}
	w.down(0)
	return slot, true
}

func (w *walk) before(a, b *cursor) bool {
	if w.first && a.backfill != b.backfill {
		return a.backfill
	}
	if a.start != b.start {
		return a.start < b.start
	}
	return w.m.older(a.slot, b.slot)
}

func (w *walk) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !w.before(&w.cursors[i], &w.cursors[parent]) {
			return
		}
		w.cursors[i], w.cursors[parent] = w.cursors[parent], w.cursors[i]
		i = parent
	}
}

func (w *walk) down(i int) {
	for {
		least, left := i, 2*i+1
		if left < len(w.cursors) && w.before(&w.cursors[left], &w.cursors[least]) {
			least = left
		}
		if right := left + 1; right < len(w.cursors) && w.before(&w.cursors[right], &w.cursors[least]) {
			least = right
		}
		if least == i {
			return
		}
		w.cursors[i], w.cursors[least] = w.cursors[least], w.cursors[i]
		i = least
	}
}
