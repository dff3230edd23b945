package searchindex

import (
	"iter"
	mathbits "math/bits"

	"github.com/musterhq/muster/internal/domain/search"
)

// block holds the columns of up to 512 game sessions. A row keeps its index until the block is split or joined; a free row keeps
// stale values.
type block struct {
	fleet *fleet
	first mark
	count int

	live, deny, joinable bits

	players, kept, most [rows]int32
	created             [rows]int64
	names               [rows]uint32 // numbers in the fleet's dictionary of names; 0: none
	locations           [rows]uint32
	marks               [rows]uint64
	refs                [rows]uint32
	properties          map[*dictionary]*cells // of the keys that a game session of the block has
}

func newBlock(f *fleet, first mark) *block {
	return &block{fleet: f, first: first, properties: map[*dictionary]*cells{}}
}

func (b *block) mark(row int) mark { return mark{b.marks[row], b.refs[row]} }

// take occupies the first free row.
func (b *block) take() int {
	for w, word := range b.live {
		if word != ^uint64(0) {
			row := w*64 + mathbits.TrailingZeros64(^word)
			b.live.set(row, true)
			b.count++
			return row
		}
	}
	panic("searchindex: no free row in a block that was made room in")
}

// judge computes hasAvailablePlayerSessions.
func (b *block) judge(row int) {
	b.joinable.set(row, search.Joinable(b.players[row]+b.kept[row], b.most[row], b.deny.has(row)))
}

// setName stores a name, "" for none, and releases the row's old name.
func (b *block) setName(row int, name string) {
	old := b.names[row]
	b.names[row] = 0
	if name != "" {
		b.names[row] = b.fleet.names.use(name)
	}
	if old != 0 {
		b.fleet.names.release(old)
	}
}

func (b *block) setProperties(row int, properties iter.Seq2[string, string]) {
	for key, value := range properties {
		d := b.fleet.property(key)
		c := b.properties[d]
		if c == nil {
			c = &cells{}
			b.properties[d] = c
		}
		c.set(row, d.use(value))
	}
}

func (b *block) clearProperties(row int, properties iter.Seq2[string, string]) {
	for key := range properties {
		d := b.fleet.properties[key]
		c := b.properties[d]
		d.release(c.get(row))
		c.set(row, 0)
		if c.used == 0 {
			delete(b.properties, d)
		}
		if d.empty() {
			delete(b.fleet.properties, key)
		}
	}
}

// move moves rows to a block that has room for them.
func (b *block) move(rowsToMove *bits, to *block) {
	var became [rows]int16
	for row := range rowsToMove.all() {
		n := to.take()
		became[row] = int16(n)
		to.deny.set(n, b.deny.has(row))
		to.joinable.set(n, b.joinable.has(row))
		to.players[n], to.kept[n], to.most[n], to.created[n] = b.players[row], b.kept[row], b.most[row], b.created[row]
		to.names[n], to.locations[n] = b.names[row], b.locations[row]
		to.marks[n], to.refs[n] = b.marks[row], b.refs[row]
		b.names[row] = 0
		b.live.set(row, false)
		b.joinable.set(row, false)
		b.count--
		b.fleet.set.spots[to.refs[n]] = spot{to, int32(n)}
	}
	for d, c := range b.properties {
		var there *cells
		for row, code := range c.taken(rowsToMove) {
			if there == nil {
				if there = to.properties[d]; there == nil {
					there = &cells{}
					to.properties[d] = there
				}
			}
			there.set(int(became[row]), code)
		}
		if c.used == 0 {
			delete(b.properties, d)
		}
	}
}
