package matcher

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

// window narrows a batch by one batchDistance rule after another, and forms a match from the rest. A rule about texts splits the batch. A
// rule about numbers gives windows; those with the anchor are tried, the one with the most players first. The anchor is the first ticket,
// then the next.
func (m *Matcher) window(batch []int32, rule int, anchor *int32) bool {
	g := &m.large
	if m.stats.Steps >= g.until {
		g.cut = true
		return false
	}
	m.stats.Steps += uint64(len(batch))
	checks := g.level.whole
	for rule < len(checks) && checks[rule].kind == checkRegions {
		rule++
	}
	if m.countPlayers(batch) < g.level.level.Minimum {
		return false
	}
	if rule == len(checks) {
		return m.form(batch)
	}
	c := &checks[rule]
	if c.kind == checkEqual {
		return m.splitByText(batch, rule, c, anchor)
	}
	return m.slide(batch, rule, c, anchor)
}

func (m *Matcher) splitByText(batch []int32, rule int, c *check, anchor *int32) bool {
	parts, place := [][]int32(nil), map[uint64]int{}
	for _, slot := range batch {
		word := m.row(slot)[c.word]
		if word == mixed || anchor != nil && word != m.row(*anchor)[c.word] {
			continue
		}
		at, ok := place[word]
		if !ok {
			at = len(parts)
			place[word] = at
			parts = append(parts, nil)
		}
		parts[at] = append(parts[at], slot)
	}
	for _, part := range parts {
		if m.window(part, rule+1, anchor) {
			return true
		}
		if m.large.cut {
			return false
		}
	}
	return false
}

type valued struct {
	slot  int32
	place int // in the batch
	value float64
}

// slide tries windows of a number.
func (m *Matcher) slide(batch []int32, rule int, c *check, anchor *int32) bool {
	sorted := make([]valued, 0, len(batch))
	for i, slot := range batch {
		row := m.row(slot)
		if v := math.Float64frombits(row[c.word]); !math.IsInf(v, 0) {
			sorted = append(sorted, valued{slot, i, v})
		}
	}
	slices.SortFunc(sorted, func(a, b valued) int { return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.place, b.place)) })
	windows := m.windows(sorted, c)
	byPlace := make([]int, len(batch)) // each ticket's index among the sorted, plus one
	for i := range sorted {
		byPlace[sorted[i].place] = i + 1
	}
	tried := make([]bool, len(windows))
	for step := range batch {
		at := (step + m.large.turn*97) % len(batch)
		own := byPlace[at] - 1
		if own < 0 || anchor != nil && batch[at] != *anchor {
			continue
		}
		for _, i := range untriedAt(windows, tried, own) {
			w := windows[i]
			tried[i] = anchor == nil && rule+1 == len(m.large.level.whole)
			inside := make([]int, 0, w.to-w.from)
			for k := w.from; k < w.to; k++ {
				inside = append(inside, sorted[k].place)
			}
			slices.Sort(inside)
			part := make([]int32, len(inside))
			for k, place := range inside {
				part[k] = batch[place]
			}
			if m.window(part, rule+1, &batch[at]) {
				return true
			}
			if m.large.cut {
				return false
			}
		}
		if len(windows) == 0 {
			return false
		}
	}
	return false
}

// untriedAt returns the windows that contain a ticket and were not tried, those with the most players first. Both ends of windows ascend,
// so it need not read the others, of which there may be as many as tickets.
func untriedAt(windows []valueWindow, tried []bool, ticket int) (untried []int) {
	first := sort.Search(len(windows), func(i int) bool { return windows[i].to > ticket })
	for i := first; i < len(windows) && windows[i].from <= ticket; i++ {
		if !tried[i] {
			untried = append(untried, i)
		}
	}
	slices.SortStableFunc(untried, func(a, b int) int { return cmp.Compare(windows[b].players, windows[a].players) })
	return untried
}

// valueWindow is a range of the sorted tickets, without its end.
type valueWindow struct {
	from, to int
	players  int32
}

// windows returns the windows that start at a ticket's value and have enough players. Their beginnings and their ends ascend.
func (m *Matcher) windows(sorted []valued, c *check) (windows []valueWindow) {
	to, players := 0, int32(0)
	for from := range sorted {
		if from > 0 {
			players -= m.pool.tickets[sorted[from-1].slot].players
		}
		for to < len(sorted) && ruleset.AtMost(ruleset.Difference(sorted[to].value, sorted[from].value, c.computed), c.most) {
			players += m.pool.tickets[sorted[to].slot].players
			to++
		}
		starts := from == 0 || sorted[from].value != sorted[from-1].value
		if starts && players >= m.large.level.level.Minimum && (len(windows) == 0 || windows[len(windows)-1].to < to) {
			windows = append(windows, valueWindow{from, to, players})
		}
	}
	return windows
}
