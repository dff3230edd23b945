package matcher

import (
	"math"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

// sorter orders the tickets that are tried after the anchor by the sort rules. It is a heap, because of a crowded pool only the first few
// are needed.
type sorter struct {
	rules   []*ruleset.Sort
	anchors []ruleset.Anchor
	entries []sortEntry
	keys    []ruleset.SortKey // len(rules) for each entry
	party   [][]ruleset.Value

	ring        bool
	value       float64 // of the anchor
	left, right int64   // the next cells to the sides
}

type sortEntry struct {
	slot int32
	keys int32 // where its keys start
}

// sortWalk takes all tickets that are compatible with the anchor from the walk, and orders them.
func (s *search) sortWalk() {
	o := &s.sorter
	o.rules, o.anchors, o.entries, o.keys = o.rules[:0], o.anchors[:0], o.entries[:0], o.keys[:0]
	anchor := s.m.pool.records[s.anchor].players
	for _, i := range s.m.plan.sorts {
		rule := s.level.level.Rules[i].Form.(*ruleset.Sort)
		o.rules = append(o.rules, rule)
		o.anchors = append(o.anchors, rule.Anchored(o.values(anchor)))
	}
	if o.ring = s.walk.ring; o.ring {
		o.value = math.Float64frombits(s.m.row(s.anchor)[s.m.plan.place])
		own := min(max(cell(o.value, s.m.plan.widths[s.walk.width]), s.walk.low), s.walk.high)
		o.left, o.right = own, own+1
		return
	}
	for {
		slot, ok := s.walk.next()
		if !ok {
			break
		}
		s.sortIn(slot)
	}
	s.loaded = true
	for i := len(o.entries)/2 - 1; i >= 0; i-- {
		o.down(s.m, i)
	}
}

// sortIn appends a ticket if it is compatible with the anchor.
func (s *search) sortIn(slot int32) bool {
	o := &s.sorter
	s.m.stats.Steps++
	if slot == s.anchor || !s.goesWithAnchor(slot) {
		return false
	}
	s.total += s.m.pool.tickets[slot].players
	o.entries = append(o.entries, sortEntry{slot, int32(len(o.keys))})
	for i, rule := range o.rules {
		o.keys = append(o.keys, o.key(rule, o.anchors[i], s.m.pool.records[slot].players, s.m.pool.records[s.anchor].players))
	}
	return true
}

func (s *search) nextSorted() (slot int32, ok bool) {
	o := &s.sorter
	for o.ring && !s.loaded {
		left, right := o.reach(s)
		nearest := min(left, right)
		if len(o.entries) > 0 && o.keys[o.entries[0].keys].Number < nearest {
			break
		}
		switch {
		case math.IsInf(nearest, 1):
			s.loaded = true
		case left <= right:
			s.sortCell(o.left)
			o.left--
		default:
			s.sortCell(o.right)
			o.right++
		}
	}
	return o.pop(s.m)
}

// reach returns the least distance from the anchor of tickets in the next cells to the left and to the right.
func (o *sorter) reach(s *search) (left, right float64) {
	width := s.m.plan.widths[s.walk.width]
	left, right = math.Inf(1), math.Inf(1)
	slack := 1e-9 * max(1, math.Abs(o.value)) // cells are found by a division
	if o.left >= s.walk.low {
		left = max(0, o.value-float64(o.left+1)*width-slack)
	}
	if o.right <= s.walk.high {
		right = max(0, float64(o.right)*width-o.value-slack)
	}
	return left, right
}

// sortCell adds the tickets of a cell in their order.
func (s *search) sortCell(at int64) {
	o := &s.sorter
	for _, shelf := range s.walk.shelves {
		list := shelf.widths[s.walk.width][at]
		if list == nil {
			continue
		}
		for _, chunk := range list.chunks {
			for _, slot := range chunk {
				start := int64(s.m.pool.tickets[slot].start)
				if s.walk.from <= start && start <= s.walk.to && s.sortIn(slot) {
					o.up(s.m, len(o.entries)-1)
				}
			}
		}
	}
}

func (o *sorter) up(m *Matcher, i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !o.less(m, i, parent) {
			return
		}
		o.entries[i], o.entries[parent] = o.entries[parent], o.entries[i]
		i = parent
	}
}

// key returns the sort key of a ticket by one rule. The case of two single players and a number is by far the most frequent.
func (o *sorter) key(rule *ruleset.Sort, a ruleset.Anchor, players, anchor []ruleset.Player) ruleset.SortKey {
	if rule.Kind != ruleset.Number || len(players) > 1 || len(anchor) > 1 {
		return rule.Key(a, o.values(players))
	}
	x := players[0].Values[rule.Column].Number
	if rule.Distance {
		x = ruleset.Difference(x, anchor[0].Values[rule.Column].Number, false)
	}
	return ruleset.SortKey{Number: x}
}

func (o *sorter) values(players []ruleset.Player) [][]ruleset.Value {
	o.party = o.party[:0]
	for i := range players {
		o.party = append(o.party, players[i].Values)
	}
	return o.party
}

func (o *sorter) pop(m *Matcher) (slot int32, ok bool) {
	last := len(o.entries) - 1
	if last < 0 {
		return 0, false
	}
	slot = o.entries[0].slot
	o.entries[0] = o.entries[last]
	o.entries = o.entries[:last]
	o.down(m, 0)
	return slot, true
}

func (o *sorter) down(m *Matcher, i int) {
	for {
		least, left := i, 2*i+1
		if left < len(o.entries) && o.less(m, left, least) {
			least = left
		}
		if right := left + 1; right < len(o.entries) && o.less(m, right, least) {
			least = right
		}
		if least == i {
			return
		}
		o.entries[i], o.entries[least] = o.entries[least], o.entries[i]
		i = least
	}
}

func (o *sorter) less(m *Matcher, i, j int) bool {
	a, b := o.entries[i], o.entries[j]
	if m.rules.Algorithm.BackfillPriority == ruleset.High {
		if first, second := m.pool.tickets[a.slot].backfill, m.pool.tickets[b.slot].backfill; first != second {
			return first
		}
	}
	for k, rule := range o.rules {
		if c := rule.Compare(o.keys[int(a.keys)+k], o.keys[int(b.keys)+k]); c != 0 {
			return c < 0
		}
	}
	return m.older(a.slot, b.slot)
}
