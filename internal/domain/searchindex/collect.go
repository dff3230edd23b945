package searchindex

import (
	"math"
	"slices"
	"strings"

	mathbits "math/bits"

	"github.com/musterhq/muster/internal/domain/search"
)

// collector keeps the first game sessions in an order. Their sort key is a number: a numeric value itself, or the label of a text. The
// key is inverted for a descending order, and is the greatest number for game sessions without a value.
type collector struct {
	order search.Order
	turn  uint64 // all ones when the order is descending
	most  int
	found []found

	after  *found // results begin after it
	values *dictionary
	games  Games
}

// found is a result, or the place after which results begin.
type found struct {
	key     uint64
	created int64
	id      string
	text    string // the text of which key was the label
	beyond  bool   // for a place: all results with this key come before it
}

const noKey = math.MaxUint64

// bind looks up the data that may change between steps.
func (c *collector) bind(f *fleet, after *search.Place, games Games) {
	c.games = games
	c.values = nil
	switch c.order.Attribute {
	case search.GameSessionName:
		c.values = f.names
	case search.Property:
		c.values = f.properties[c.order.Key]
	}
	if after == nil {
		return
	}
	a := &found{key: noKey, created: after.Created, id: after.ID}
	c.after = a
	switch {
	case after.None:
	case c.order.Attribute == search.None:
		a.key = uint64(after.Number)
	case c.order.Attribute.Numeric():
		a.key = c.turned(uint64(after.Number))
	case c.order.Attribute == search.GameSessionID:
		// Only their ids distinguish them; see compare.
		a.key = 0
	default:
		c.seekText(a, after.Text)
	}
}

// seekText finds the key of a text that may no longer be in use.
func (c *collector) seekText(a *found, text string) {
	label, exact, ok := uint64(labelEnd), false, false
	if c.values != nil {
		if label, exact, ok = c.values.seek(text); !ok {
			label = labelEnd
		}
	}
	if !exact { // labels below it come before the text, this one and those above after it
		a.beyond = true
		if !c.order.Descending {
			label--
		}
	}
	a.key = c.turned(label)
}

// turned returns the key of a number or label, so that lower keys come first.
func (c *collector) turned(v uint64) uint64 {
	// Numbers are neither negative nor near the greatest, so none becomes noKey.
	return (v + 1) ^ c.turn
}

func turnOf(o search.Order) uint64 { return flip(o.Descending) }

// full reports whether the page is full: another result must come before the last one.
func (c *collector) full() bool { return len(c.found) == c.most }

// offerAll adds the rows that are among the first results.
func (c *collector) offerAll(b *block, chosen *bits) {
	for w, word := range chosen {
		for ; word != 0; word &= word - 1 {
			row := w*64 + mathbits.TrailingZeros64(word)
			c.offer(b, row, c.keyOf(b, row))
		}
	}
}

func (c *collector) keyOf(b *block, row int) uint64 {
	switch c.order.Attribute {
	case search.None:
		return b.marks[row] - c.order.Start
	case search.GameSessionID:
		return 0
	case search.CreationTimeMillis:
		return c.turned(uint64(b.created[row]))
	case search.PlayerSessionCount:
		return c.turned(uint64(b.players[row]))
	case search.MaximumSessions:
		return c.turned(uint64(b.most[row]))
	case search.HasAvailablePlayerSessions:
		return c.turned(b.joinable[row/64] >> (row % 64) & 1)
	}
	if code := c.codeOf(b, row); code != 0 {
		return c.turned(c.values.labels[code])
	}
	return noKey
}

// codeOf returns the number of the text by which a row is sorted.
func (c *collector) codeOf(b *block, row int) uint32 {
	if c.order.Attribute == search.GameSessionName {
		return b.names[row]
	}
	if column := b.properties[c.values]; column != nil {
		return column.get(row)
	}
	return 0
}

// reach sets in out the rows of within that may be among the first results, judging by their keys alone.
func (c *collector) reach(b *block, within, out *bits) {
	*out = *within
	lowest, greatest := uint64(0), uint64(noKey)
	if c.after != nil {
		lowest = c.after.key
	}
	if c.full() {
		greatest = c.found[c.most-1].key
	}
	if c.order.Attribute == search.None {
		betweenMarks(&b.marks, c.order.Start+lowest, greatest-lowest, within, out)
		return
	}
	// Convert keys back to numbers and labels; see turned.
	low, high := lowest, greatest
	if c.order.Descending {
		low, high = ^greatest, ^lowest
	}
	if high == 0 {
		low, high = 1, 0 // after all numbers and labels
	} else {
		low, high = max(low, 1)-1, min(high-1, math.MaxInt64)
	}
	switch c.order.Attribute {
	case search.GameSessionID:
	case search.CreationTimeMillis:
		between64(&b.created, int64(low), int64(high), within, out)
	case search.PlayerSessionCount:
		between32(&b.players, int64(low), int64(high), within, out)
	case search.MaximumSessions:
		between32(&b.most, int64(low), int64(high), within, out)
	case search.HasAvailablePlayerSessions:
		for w, joinable := range b.joinable {
			out[w] &= joinable&flip(low <= 1 && 1 <= high) | ^joinable&flip(low == 0)
		}
	case search.GameSessionName:
		c.reachTexts(&b.names, low, high, greatest == noKey, within, out)
	case search.Property:
		switch column := b.properties[c.values]; {
		case column == nil:
			if greatest != noKey {
				*out = bits{}
			}
		case column.dense != nil:
			c.reachTexts(column.dense, low, high, greatest == noKey, within, out)
		}
	}
}

// reachTexts selects the rows whose text has a label between low and high, and rows without text if none is set.
func (c *collector) reachTexts(column *[rows]uint32, low, high uint64, none bool, within, out *bits) {
	labels := c.values.labels
	width := high - low
	if low > high { // no label is above the greatest number
		low, width = math.MaxUint64, 0
	}
	for w := range out {
		if out[w] = within[w]; out[w] == 0 {
			continue
		}
		if few(within[w]) {
			for left := within[w]; left != 0; left &= left - 1 {
				i := mathbits.TrailingZeros64(left)
				code := column[w*64+i]
				out[w] &^= bit(code != 0 && labels[code]-low > width || code == 0 && !none) << i
			}
			continue
		}
		var word uint64
		for i, code := range column[w*64 : w*64+64] {
			word |= bit(code != 0 && labels[code]-low <= width || code == 0 && none) << (i & 63)
		}
		out[w] &= word
	}
}

// offer adds a row if it is among the first results.
func (c *collector) offer(b *block, row int, key uint64) {
	x := found{key: key, created: b.created[row]}
	byID := c.order.Attribute == search.GameSessionID
	full := c.full()
	if full && key > c.found[c.most-1].key {
		return
	}
	// The id is in the record, a slow read that most rows do not need.
	if !byID {
		if full && behind(&x, &c.found[c.most-1]) || c.after != nil && behind(c.after, &x) {
			return
		}
	}
	x.id = c.games.GameID(b.refs[row])
	if c.after != nil && c.compare(&x, c.after) <= 0 {
		return
	}
	if full && c.compare(&x, &c.found[c.most-1]) >= 0 {
		return
	}
	if c.values != nil && key != noKey {
		x.text = c.values.texts[c.codeOf(b, row)]
	}
	i, _ := slices.BinarySearchFunc(c.found, x, func(a, b found) int { return c.compare(&a, &b) })
	if full {
		c.found = c.found[:c.most-1]
	}
	c.found = slices.Insert(c.found, i, x)
}

// behind reports whether a certainly comes after b, without reading ids.
func behind(a, b *found) bool {
	return a.key > b.key || a.key == b.key && !b.beyond && (a.beyond || a.created > b.created)
}

// compare is negative if a comes before b.
func (c *collector) compare(a, b *found) int {
	if a.key != b.key {
		if a.key < b.key {
			return -1
		}
		return 1
	}
	if b.beyond {
		return -1
	}
	if c.order.Attribute == search.GameSessionID {
		if c.order.Descending {
			return strings.Compare(b.id, a.id)
		}
		return strings.Compare(a.id, b.id)
	}
	if a.created != b.created {
		if a.created < b.created {
			return -1
		}
		return 1
	}
	return strings.Compare(a.id, b.id)
}

// beyond reports whether no result after a mark can be among the first: the search follows the ring, and its page is full.
func (c *collector) beyond(hash uint64) bool {
	return c.order.Attribute == search.None && c.full() && hash-c.order.Start > c.found[c.most-1].key
}

// place returns the place of a result in a form that does not depend on labels.
func (x *found) place(o search.Order) search.Place {
	p := search.Place{Created: x.created, ID: x.id}
	switch {
	case o.Attribute == search.GameSessionID:
	case o.Attribute == search.None:
		p.Number = int64(x.key)
	case x.key == noKey:
		p.None = true
	case !o.Attribute.Numeric():
		p.Text = search.OrderText(x.text)
	default:
		p.Number = int64((x.key ^ turnOf(o)) - 1)
	}
	return p
}
