package searchindex

import (
	"cmp"
	"math"
	"slices"

	mathbits "math/bits"

	"github.com/musterhq/muster/internal/domain/search"
)

// test is a node of a filter, bound to the current state of the fleet: texts are resolved to their numbers, ids to spots.
type test struct {
	node   *search.Node
	kids   []test
	values *dictionary // of a property; nil: no game session has it
	code   uint32      // of the text; 0: no game session has it
	spots  []spot

	uses int // upper bound of the game sessions that pass, from counts alone

	left, passed bits // scratch, so that a step allocates nothing
}

func newTest(n *search.Node) test {
	t := test{node: n, kids: make([]test, len(n.Kids))}
	for i, k := range n.Kids {
		t.kids[i] = newTest(k)
	}
	return t
}

// bind looks up the data that may change between steps.
func (t *test) bind(f *fleet, fleetID string, games Games) {
	for i := range t.kids {
		t.kids[i].bind(f, fleetID, games)
	}
	t.uses = math.MaxInt
	switch t.node.Op {
	case search.And: // the test that fewer pass comes first and leaves less work for the other
		slices.SortStableFunc(t.kids, func(a, b test) int { return cmp.Compare(a.uses, b.uses) })
		t.uses = t.kids[0].uses
	case search.Is, search.IsNot:
		t.values = f.names
		if t.node.Attribute == search.Property {
			t.values = f.properties[t.node.Key]
		}
		if t.code = 0; t.values != nil {
			t.code = t.values.codes[t.node.Text]
			if t.node.Op == search.Is {
				t.uses = int(t.values.uses[t.code])
			}
		}
	case search.IsGame:
		t.bindGame(f, fleetID, games)
	}
}

// bindGame finds the rows of a game session: several, if the filter has only its id string and locations share it.
func (t *test) bindGame(f *fleet, fleetID string, games Games) {
	t.spots, t.uses = t.spots[:0], 1
	g := t.node.Game
	if g.Fleet != "" && g.Fleet != fleetID {
		return
	}
	for location := range f.locations.codes { // this only sets bits, so the order of the map does not matter
		if g.Location != "" && g.Location != location {
			continue
		}
		if ref, ok := games.GameRef(fleetID + "/" + location + "/" + g.Name); ok && int(ref) < len(f.set.spots) {
			t.spots = append(t.spots, f.set.spots[ref])
		}
	}
}

// run sets in out the rows of within that pass.
func (t *test) run(b *block, within, out *bits) {
	n := t.node
	switch n.Op {
	case search.And:
		*out = *within
		for i := range t.kids {
			t.left = *out
			t.kids[i].run(b, &t.left, out)
			if out.empty() {
				return
			}
		}
	case search.Or:
		t.left = *within
		for i := range t.kids {
			t.kids[i].run(b, &t.left, &t.passed)
			for w := range t.passed {
				t.left[w] &^= t.passed[w]
			}
			if t.left.empty() {
				break
			}
		}
		for w := range out {
			out[w] = within[w] &^ t.left[w]
		}
	case search.Not:
		t.kids[0].run(b, within, &t.passed)
		for w := range out {
			out[w] = within[w] &^ t.passed[w]
		}
	case search.IsTruth:
		for w := range out {
			out[w] = within[w] & (b.joinable[w] ^ flip(!n.Truth))
		}
	case search.Between:
		switch n.Attribute {
		case search.CreationTimeMillis:
			between64(&b.created, n.Low, n.High, within, out)
		case search.PlayerSessionCount:
			between32(&b.players, n.Low, n.High, within, out)
		default:
			between32(&b.most, n.Low, n.High, within, out)
		}
	case search.IsGame:
		*out = bits{}
		for _, at := range t.spots {
			if at.block == b && within.has(int(at.row)) {
				out.set(int(at.row), true)
			}
		}
	default:
		t.runText(b, within, out)
	}
}

// flip returns all ones or all zeros, to invert bits with.
func flip(on bool) uint64 {
	if on {
		return ^uint64(0)
	}
	return 0
}

func (t *test) runText(b *block, within, out *bits) {
	different := t.node.Op == search.IsNot
	if t.node.Attribute == search.GameSessionName {
		equal(&b.names, t.code, different, within, out)
		return
	}
	c := b.properties[t.values]
	switch {
	case c == nil || t.code == 0 && !different:
		*out = bits{}
	case c.dense != nil:
		equal(c.dense, t.code, different, within, out)
	default:
		*out = bits{}
		for _, x := range c.list {
			if (x.code == t.code) != different && within.has(int(x.row)) {
				out.set(int(x.row), true)
			}
		}
	}
}

// The loops below process 64 rows at a time and skip words without rows in question; if few are in question they process single rows.
// Otherwise their bodies have no branches, because the processor could not predict the comparisons.

// few reports whether a word has so few rows left that they are processed one by one.
func few(word uint64) bool { return mathbits.OnesCount64(word) <= 8 }

func between64(column *[rows]int64, low, high int64, within, out *bits) {
	if low > high {
		*out = bits{}
		return
	}
	width := uint64(high) - uint64(low)
	for w := range out {
		if out[w] = within[w]; out[w] == 0 {
			continue
		}
		if few(within[w]) {
			for left := within[w]; left != 0; left &= left - 1 {
				i := mathbits.TrailingZeros64(left)
				v := column[w*64+i]
				out[w] &^= bit(!(uint64(v)-uint64(low) <= width)) << i
			}
			continue
		}
		var word uint64
		for i, v := range column[w*64 : w*64+64] {
			word |= bit(uint64(v)-uint64(low) <= width) << (i & 63)
		}
		out[w] &= word
	}
}

func betweenMarks(column *[rows]uint64, low, width uint64, within, out *bits) {
	for w := range out {
		if out[w] = within[w]; out[w] == 0 {
			continue
		}
		var word uint64
		for i, v := range column[w*64 : w*64+64] {
			word |= bit(v-low <= width) << (i & 63)
		}
		out[w] &= word
	}
}

func between32(column *[rows]int32, low, high int64, within, out *bits) {
	low, high = max(low, math.MinInt32), min(high, math.MaxInt32)
	if low > high {
		*out = bits{}
		return
	}
	from, width := uint32(low), uint32(high)-uint32(low)
	for w := range out {
		if out[w] = within[w]; out[w] == 0 {
			continue
		}
		if few(within[w]) {
			for left := within[w]; left != 0; left &= left - 1 {
				i := mathbits.TrailingZeros64(left)
				v := column[w*64+i]
				out[w] &^= bit(!(uint32(v)-from <= width)) << i
			}
			continue
		}
		var word uint64
		for i, v := range column[w*64 : w*64+64] {
			word |= bit(uint32(v)-from <= width) << (i & 63)
		}
		out[w] &= word
	}
}

// equal selects the rows whose number is code, or with different set those with another number; 0 means no text.
func equal(column *[rows]uint32, code uint32, different bool, within, out *bits) {
	if code == 0 && !different {
		*out = bits{}
		return
	}
	for w := range out {
		if out[w] = within[w]; out[w] == 0 {
			continue
		}
		if few(within[w]) {
			for left := within[w]; left != 0; left &= left - 1 {
				i := mathbits.TrailingZeros64(left)
				v := column[w*64+i]
				out[w] &^= bit(!((v == code) != different && v != 0)) << i
			}
			continue
		}
		var word uint64
		for i, v := range column[w*64 : w*64+64] {
			word |= bit(v == code) << (i & 63)
		}
		if different {
			word = ^word
			for i, v := range column[w*64 : w*64+64] {
				word &^= bit(v == 0) << (i & 63)
			}
		}
		out[w] &= word
	}
}

func bit(on bool) uint64 {
	if on {
		return 1
	}
	return 0
}
