package kernel

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/domain/chunk"
)

// EndedKind is a kind of ended record, numbered by its room.
type EndedKind uint8

// Ended identifies an ended record: its room, its kind in the room, and its reference.
type Ended struct {
	Room RoomNo
	Kind EndedKind
	Ref  chunk.AnyRef
}

// EndedQueue lists the ended records in memory, in the order of their ends. The archive takes from the front.
type EndedQueue struct {
	ring       []Ended
	head, used int
	no         uint64 // counts all records that ever ended
}

// Len returns the number of ended records in memory.
func (q *EndedQueue) Len() int { return q.used }

// At returns the i-th record, in the order of their ends.
func (q *EndedQueue) At(i int) Ended { return q.ring[(q.head+i)%len(q.ring)] }

// Next returns the number for the next record that ends.
func (q *EndedQueue) Next() uint64 {
	q.no++
	return q.no
}

// Push adds a record that has just ended.
func (q *EndedQueue) Push(e Ended) {
	if q.used == len(q.ring) {
		bigger := make([]Ended, max(64, 2*len(q.ring)))
		for i := range q.used {
			bigger[i] = q.At(i)
		}
		q.ring, q.head = bigger, 0
	}
	q.ring[(q.head+q.used)%len(q.ring)] = e
	q.used++
}

func (q *EndedQueue) pop() Ended {
	e := q.ring[q.head]
	q.head = (q.head + 1) % len(q.ring)
	q.used--
	return e
}

// forget removes the n records that ended first.
func (k *Kernel) forget(n int) {
	for range n {
		e := k.Ended.pop()
		if k.rooms[e.Room].Drop(e) {
			k.forgotten++
		}
	}
}

// restoreEnded rebuilds the list from the records; no is the last assigned number, maybe of a record that is no longer in memory.
func (k *Kernel) restoreEnded(no uint64) {
	type numbered struct {
		no uint64
		e  Ended
	}
	each := func(yield func(no uint64, e Ended)) {
		for _, room := range k.rooms {
			if room != nil {
				room.EachEnded(yield)
			}
		}
	}
	n := 0
	each(func(uint64, Ended) { n++ })
	all := make([]numbered, 0, n)
	each(func(no uint64, e Ended) { all = append(all, numbered{no, e}) })
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(a.no, b.no) })
	k.Ended.ring = make([]Ended, n+n/8)
	for _, x := range all {
		k.Ended.Push(x.e)
	}
	k.Ended.no = no
}
