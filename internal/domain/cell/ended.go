package cell

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/domain/chunk"
)

// endedKind is what has ended.
type endedKind uint8

const (
	endedPlayer endedKind = iota + 1
	endedGame
	endedPlacement
	endedTicket
	endedChange // of a player's keys: it is past when it happens
)

// endedQueue lists what has ended and is still in memory, in the order it ended. The archive takes from the front.
type endedQueue struct {
	ring       []endedEntry
	head, used int
	no         uint64 // counts what has ever ended
}

type endedEntry struct {
	kind endedKind
	ref  chunk.Ref
}

func (q *endedQueue) at(i int) endedEntry { return q.ring[(q.head+i)%len(q.ring)] }

// next is the number of the record that ends next.
func (q *endedQueue) next() uint64 {
	q.no++
	return q.no
}

func (q *endedQueue) push(kind endedKind, ref chunk.Ref) {
	if q.used == len(q.ring) {
		bigger := make([]endedEntry, max(64, 2*len(q.ring)))
		for i := range q.used {
			bigger[i] = q.at(i)
		}
		q.ring, q.head = bigger, 0
	}
	q.ring[(q.head+q.used)%len(q.ring)] = endedEntry{kind, ref}
	q.used++
}

func (q *endedQueue) pop() endedEntry {
	e := q.ring[q.head]
	q.head = (q.head + 1) % len(q.ring)
	q.used--
	return e
}

// forget drops the n records that ended first.
func (c *Cell) forget(n int) {
	for range n {
		switch e := c.ended.pop(); e.kind {
		case endedPlayer:
			c.sessions.DropPlayer(e.ref)
		case endedGame:
			c.sessions.DropGame(e.ref)
			c.forgotten++
		case endedPlacement:
			c.placements.Remove(e.ref)
			c.forgotten++
		case endedTicket:
			c.matchmaking.RemoveTicket(e.ref)
			c.forgotten++
		case endedChange:
			c.flow.RemoveChange(e.ref)
		}
	}
}

// restoreEnded rebuilds the list from the records; no is the last number given, maybe to a record that has left.
func (c *Cell) restoreEnded(no uint64) {
	type numbered struct {
		no uint64
		e  endedEntry
	}
	var all []numbered
	for r, g := range c.sessions.Games.All() {
		if g.EndedNo != 0 {
			all = append(all, numbered{g.EndedNo, endedEntry{endedGame, r}})
		}
	}
	for r, p := range c.sessions.Players.All() {
		if p.EndedNo != 0 {
			all = append(all, numbered{p.EndedNo, endedEntry{endedPlayer, r}})
		}
	}
	for r, p := range c.placements.Placements.All() {
		if p.EndedNo != 0 {
			all = append(all, numbered{p.EndedNo, endedEntry{endedPlacement, r}})
		}
	}
	for r, x := range c.matchmaking.Tickets.All() {
		if x.EndedNo != 0 {
			all = append(all, numbered{x.EndedNo, endedEntry{endedTicket, r}})
		}
	}
	for r, x := range c.flow.Changes.All() {
		all = append(all, numbered{x.EndedNo, endedEntry{endedChange, r}})
	}
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(a.no, b.no) })
	for _, x := range all {
		c.ended.push(x.e.kind, x.e.ref)
	}
	c.ended.no = no
}
