package kernel

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
)

// Wait is a kind of deadline. Contact deadlines are for clients and servers, which cannot reach the service while it is down. Wall
// deadlines also pass during downtime.
type Wait uint16

// WaitsOfRoom is the most kinds of deadlines that a room may have per clock. A room's contact deadlines are numbered from its room number
// times WaitsOfRoom, its wall deadlines from FirstWall plus that.
const WaitsOfRoom = 16

// AtOnce is a wall deadline that is due immediately, before any other. It does not depend on when the wait began, because snapshots do
// not contain that.
const AtOnce = domain.Time(1)

// FirstWall is the lowest kind of wall deadline.
const FirstWall Wait = roomsMax * WaitsOfRoom

func (w Wait) room() RoomNo { return RoomNo(w % FirstWall / WaitsOfRoom) }

// Deadline is the end of a record's wait.
type Deadline struct {
	At   int64 // Unix milliseconds on the clock of its kind
	Ref  chunk.AnyRef
	Kind Wait
}

// before orders deadlines. Ties have a fixed order, so that every run of the same commands has the same result.
func (a Deadline) before(b Deadline) bool {
	if a.At != b.At {
		return a.At < b.At
	}
	if a.Kind != b.Kind {
		return a.Kind < b.Kind
	}
	return a.Ref < b.Ref
}

// Deadlines holds all deadlines of a cell, in two heaps, because the two clocks drift apart with every restart. A record does not store
// its position in the heap, so moving an entry does not copy a frozen block.
//
// A deadline costs 16 bytes in its heap. In addition, each kind of deadline that a table's records may have costs 4 bytes for every place
// in that table. Deadlines are not in snapshots: rooms set them again from their records. The order in which they are set does not
// matter, because ties are ordered by kind and then by place, and places are the same in every replay from the beginning. They may differ
// between a replay and a loaded snapshot; this is safe because only the live state decides, and the journal records its decisions.
type Deadlines struct{ contact, wall heap }

func newDeadlines() Deadlines {
	var d Deadlines
	d.contact.places = make([][]int32, 2*int(FirstWall))
	d.wall.places = make([][]int32, 2*int(FirstWall))
	return d
}

// Set moves a contact deadline, or clears it when at is 0.
func (d *Deadlines) Set(kind Wait, ref chunk.AnyRef, at domain.ContactTime) {
	d.contact.set(kind, ref, int64(at))
}

// SetWall moves a wall deadline, or clears it when at is 0.
func (d *Deadlines) SetWall(kind Wait, ref chunk.AnyRef, at domain.Time) {
	d.wall.set(kind, ref, int64(at))
}

// Expect announces that deadlines for the first n places of a table are about to be set, so that memory for them is allocated at once.
func (d *Deadlines) Expect(n int) { d.contact.expected, d.wall.expected = n, n }

// Clear removes a deadline, if there is one.
func (d *Deadlines) Clear(kind Wait, ref chunk.AnyRef) {
	if kind < FirstWall {
		d.contact.set(kind, ref, 0)
	} else {
		d.wall.set(kind, ref, 0)
	}
}

// NextWall returns the wall deadline that ends first.
func (d *Deadlines) NextWall() (Deadline, bool) { return d.wall.next() }

// All yields every deadline, in no particular order.
func (d *Deadlines) All() iter.Seq[Deadline] {
	return func(yield func(Deadline) bool) {
		for _, h := range []*heap{&d.contact, &d.wall} {
			for _, x := range h.entries {
				if !yield(x) {
					return
				}
			}
		}
	}
}

// Check checks the invariants of the heaps, for tests.
func (d *Deadlines) Check() error {
	for _, h := range []*heap{&d.contact, &d.wall} {
		for i, x := range h.entries {
			if i > 0 && x.before(h.entries[(i-1)/4]) {
				return fmt.Errorf("deadline %+v is before its parent in the heap", x)
			}
			if at := h.places[x.Kind][x.Ref]; int(at) != i+1 {
				return fmt.Errorf("deadline %+v is at %d in the heap, and is noted at %d", x, i, at-1)
			}
		}
	}
	return nil
}

// heap is a 4-ary heap that knows the position of each entry, so that a deadline can be moved or cleared. Every operation takes time
// logarithmic in the number of deadlines. It holds two invariants: no entry is before its parent, (i-1)/4, and places[kind][ref] is the
// index of the entry plus one.
type heap struct {
	entries []Deadline
	places  [][]int32 // by kind and reference: index in entries plus one; 0: none

	expected int // see Expect
}

func (h *heap) next() (Deadline, bool) {
	if len(h.entries) == 0 {
		return Deadline{At: math.MaxInt64}, false
	}
	return h.entries[0], true
}

// set moves the deadline of (kind, ref) to at, or clears it when at is 0.
func (h *heap) set(kind Wait, ref chunk.AnyRef, at int64) {
	places := h.places[kind]
	if int(ref) >= len(places) {
		if at == 0 {
			return
		}
		more := make([]int32, max(int(ref)+len(places)/4, h.expected)+1)
		copy(more, places)
		places, h.places[kind] = more, more
	}
	place := int(places[ref]) - 1
	switch {
	case place < 0 && at == 0:
	case place < 0:
		if len(h.entries) == cap(h.entries) && h.expected > 0 {
			h.entries = slices.Grow(h.entries, h.expected)
		}
		h.entries = append(h.entries, Deadline{at, ref, kind})
		h.up(len(h.entries) - 1)
	case at == 0:
		places[ref] = 0
		last := len(h.entries) - 1
		moved := h.entries[last]
		h.entries = h.entries[:last]
		if place < last {
			h.put(place, moved)
			h.down(h.up(place))
		}
	default:
		h.entries[place].At = at
		h.down(h.up(place))
	}
}

func (h *heap) put(place int, d Deadline) {
	h.entries[place] = d
	h.places[d.Kind][d.Ref] = int32(place + 1)
}

func (h *heap) up(place int) int {
	d := h.entries[place]
	for place > 0 {
		parent := (place - 1) / 4
		if !d.before(h.entries[parent]) {
			break
		}
		h.put(place, h.entries[parent])
		place = parent
	}
	h.put(place, d)
	return place
}

func (h *heap) down(place int) {
	d := h.entries[place]
	for {
		least, at := d, place
		for child := 4*place + 1; child <= 4*place+4 && child < len(h.entries); child++ {
			if h.entries[child].before(least) {
				least, at = h.entries[child], child
			}
		}
		if at == place {
			break
		}
		h.put(place, least)
		place = at
	}
	h.put(place, d)
}
