package kernel

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/domain/chunk"
)

// EndedKind is what has ended. Rooms number their kinds in Ended.
type EndedKind uint8

// Ended is a record that has ended: which room's, of which of its kinds, and where it is.
type Ended struct {
	Room RoomNo
	Kind EndedKind
	Ref  chunk.AnyRef
}

// EndedQueue lists what has ended and is still in memory, in the order it ended. The archive takes from the front.
type EndedQueue struct {
	ring       []Ended
	head, used int
	no         uint64 // counts what has ever ended
}

// Len is how many records have ended and are still in memory.
func (q *EndedQueue) Len() int { return q.used }

// At returns the i-th record, from the one that ended first.
func (q *EndedQueue) At(i int) Ended { return q.ring[(q.head+i)%len(q.ring)] }

// Next is the number of the record that ends next.
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

// forget drops the n records that ended first.
func (k *Kernel) forget(n int) {
	for range n {
		e := k.Ended.pop()
		if k.rooms[e.Room].Drop(e) {
			k.forgotten++
		}
	}
}

// restoreEnded rebuilds the list from the records; no is the last number given, maybe to a record that has left.
func (k *Kernel) restoreEnded(no uint64) {
	type numbered struct {
		no uint64
		e  Ended
	}
	var all []numbered
	for _, room := range k.rooms {
		if room != nil {
			room.EachEnded(func(no uint64, e Ended) { all = append(all, numbered{no, e}) })
		}
	}
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(a.no, b.no) })
	for _, x := range all {
		k.Ended.Push(x.e)
	}
	k.Ended.no = no
}
