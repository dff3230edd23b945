package searchindex

import (
	"math"
	"slices"
	"strings"

	mathbits "math/bits"

	"github.com/musterhq/muster/internal/domain/search"
)

// collector keeps the first game sessions in an order. What they are sorted by is one number for each: a number itself,
// or a text's label; turned round when the order is descending; the greatest number for those who have none.
type collector struct {
	order search.Order
	turn  uint64 // all ones when the order is descending
	most  int
	found []found

	after  *found // results begin behind it
	values *dictionary
	games  Games
}

// found is a result, or the place behind which results begin.
type found struct {
	key     uint64
	created int64
	id      string
	text    string // whose label key was
	beyond  bool   // as a place: all that has this key stands before it
}

const noKey = math.MaxUint64

// bind looks up what changes from step to step.
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
		// They are told apart by their ids alone; see compare.
		a.key = 0
	default:
		c.seekText(a, after.Text)
	}
}

// seekText finds the key of a text that may be gone.
func (c *collector) seekText(a *found, text string) {
	label, exact, ok := uint64(labelEnd), false, false
	if c.values != nil {
		if label, exact, ok = c.values.seek(text); !ok {
			label = labelEnd
		}
	}
	if !exact { // all below label stand on one side of it, label and all above it on the other
		a.beyond = true
		if !c.order.Descending {
			label--
		}
	}
	a.key = c.turned(label)
}

// turned gives a key for a number or label, so that lower keys stand first.
func (c *collector) turned(v uint64) uint64 {
	// Numbers are not negative and far below the greatest, so none becomes noKey.
	return (v + 1) ^ c.turn
}

func turnOf(o search.Order) uint64 { return flip(o.Descending) }

// collect takes over those of the rows that are among the first so far.
func (c *collector) collect(b *block, chosen *bits) {
	low := uint64(0)
	if c.after != nil {
		low = c.after.key
	}
	var keys [64]uint64
	for w, word := range chosen {
		if word == 0 {
			continue
		}
		c.fill(b, w, &keys)
		// Few rows are among the first ones: the others are sorted out without branches.
		var among uint64
		width := c.limit() - low
		for i, key := range keys {
			among |= bit(key-low <= width) << (i & 63)
		}
		for word &= among; word != 0; word &= word - 1 {
			i := mathbits.TrailingZeros64(word)
			c.offer(b, w*64+i, keys[i])
		}
	}
}

// limit is the greatest key that may still be among the first ones. It is never below the key of the place behind which
// results begin.
func (c *collector) limit() uint64 {
	if len(c.found) < c.most {
		return noKey
	}
	return c.found[c.most-1].key
}

// fill writes the keys of 64 rows.
func (c *collector) fill(b *block, w int, keys *[64]uint64) {
	from, to := w*64, w*64+64
	switch c.order.Attribute {
	case search.None:
		for i, m := range b.marks[from:to] {
			keys[i&63] = m - c.order.Start
		}
	case search.CreationTimeMillis:
		for i, v := range b.created[from:to] {
			keys[i&63] = c.turned(uint64(v))
		}
	case search.PlayerSessionCount:
		for i, v := range b.players[from:to] {
			keys[i&63] = c.turned(uint64(v))
		}
	case search.MaximumSessions:
		for i, v := range b.most[from:to] {
			keys[i&63] = c.turned(uint64(v))
		}
	case search.HasAvailablePlayerSessions:
		for i := range keys {
			keys[i] = c.turned(b.joinable[w] >> (i & 63) & 1)
		}
	case search.GameSessionName:
		c.fillLabels(b.names[from:to], keys)
	case search.Property:
		c.fillProperty(b.properties[c.values], from, keys)
	}
}

func (c *collector) fillProperty(column *cells, from int, keys *[64]uint64) {
	if column != nil && column.dense != nil {
		c.fillLabels(column.dense[from:from+64], keys)
		return
	}
	for i := range keys {
		keys[i] = noKey
	}
	if column == nil {
		return
	}
	for _, x := range column.list {
		if row := int(x.row) - from; 0 <= row && row < len(keys) {
			keys[row] = c.turned(c.values.labels[x.code])
		}
	}
}

func (c *collector) fillLabels(codes []uint32, keys *[64]uint64) {
	labels := c.values.labels
	for i, code := range codes {
		key := c.turned(labels[code])
		if code == 0 {
			key = noKey
		}
		keys[i&63] = key
	}
}

// offer takes a row over if it is among the first ones.
func (c *collector) offer(b *block, row int, key uint64) {
	x := found{key: key, created: b.created[row]}
	byID := c.order.Attribute == search.GameSessionID
	full := len(c.found) == c.most
	if full && key > c.found[c.most-1].key {
		return
	}
	// Asking for the id means a walk to the record; most rows can be told without.
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
		x.text = c.textOf(b, row)
	}
	i, _ := slices.BinarySearchFunc(c.found, x, func(a, b found) int { return c.compare(&a, &b) })
	if full {
		c.found = c.found[:c.most-1]
	}
	c.found = slices.Insert(c.found, i, x)
}

// behind reports whether a certainly stands behind b, without asking for ids.
func behind(a, b *found) bool {
	return a.key > b.key || a.key == b.key && !b.beyond && (a.beyond || a.created > b.created)
}

func (c *collector) textOf(b *block, row int) string {
	code := b.names[row]
	if c.order.Attribute == search.Property {
		code = b.properties[c.values].get(row)
	}
	return c.values.texts[code]
}

// compare is negative when a stands before b.
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

// beyond reports whether no more results can come from a mark on: the search goes round the ring, and its page is full.
func (c *collector) beyond(hash uint64) bool {
	return c.order.Attribute == search.None && len(c.found) == c.most && hash-c.order.Start > c.found[c.most-1].key
}

// place says where a result stands, in words that outlive the labels.
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
