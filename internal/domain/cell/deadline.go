package cell

import (
	"math"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
)

// waits is what a deadline is for.
type waits uint8

// Contact deadlines wait for somebody who could not reach us while we were down.
const (
	reservation        waits = iota // a player session's seat
	activation                      // a game session's activation
	ready                           // a process's ProcessReady
	lost                            // a process's link
	unhealthy                       // a process's next good heartbeat
	termination                     // a process's end
	gameServerClaim                 // a claimed game server's being utilized
	gameServerHealth                // its next good word
	playerPresence                  // a player's client
	partyRemoval                    // a member of a party who is offline
	queueRemoval                    // the party of a player who is offline, in the queue
	partyLeader                     // a party's leader who is offline
	partyStale                      // a party where nobody is
	partyReady                      // a party whose members are ready, and do not search
	inviteExpiry                    // an invited player's answer; then the memory of the invite
	loginExpiry                     // a login session's next sign of life; then the memory of it
	instanceAllocation              // a game instance's host
	instanceAbsolute                // its end, whatever happens
	instanceEnding                  // its end, after its host was told to end
	instanceEmpty                   // somebody to play in it
	instanceKeepAlive               // its server's next sign of life
	seatHold                        // a player's return to a kept seat
	studioReceivers                 // the receivers of the studio's subscriptions; all in one, for the first of them
	lastContact
)

// Wall deadlines end on time, also when the service was down.
const (
	forgetProcess     waits = lastContact + iota // an ended process
	creation                                     // a creation that the creation policy counts
	sweep                                        // a fleet that is being deleted
	placementTimeout                             // a pending placement
	placementRound                               // a pending placement whose choices have changed
	noticeAge                                    // a notice that nobody takes
	acceptanceTimeout                            // a match whose players are asked
	ticketTimeout                                // a ticket that waits in its pool
	queueDrain                                   // a closed queue's searches
	queueEstimate                                // those who search in a queue, to be told how long it takes now
	playerAge                                    // what is remembered of a player who is away
	instanceForget                               // an ended game instance
	loginTicketAge                               // a login ticket that nobody used
	playerUnlock                                 // a lock that keeps a player from searching
	waitsCount
)

// deadlines is every deadline of the cell: two heaps, because the two clocks drift apart with every restart. Places in
// the heaps are kept beside the records, so that moving an entry copies no frozen block.
type deadlines struct {
	contact, wall heap
}

func newDeadlines() deadlines {
	var d deadlines
	d.contact.places = make([][]int32, waitsCount)
	d.wall.places = make([][]int32, waitsCount)
	return d
}

func (d *deadlines) set(kind waits, ref chunk.Ref, at domain.ContactTime) {
	d.contact.set(kind, ref, int64(at))
}

func (d *deadlines) setWall(kind waits, ref chunk.Ref, at domain.Time) {
	d.wall.set(kind, ref, int64(at))
}

func (d *deadlines) clear(kind waits, ref chunk.Ref) {
	if kind < lastContact {
		d.contact.set(kind, ref, 0)
	} else {
		d.wall.set(kind, ref, 0)
	}
}

// clearProcess clears every deadline of a process but that of its record.
func (d *deadlines) clearProcess(ref chunk.Ref) {
	for kind := ready; kind <= termination; kind++ {
		d.clear(kind, ref)
	}
}

// heap is a 4-ary heap with the place of each entry, so that a deadline can be moved or cleared.
type heap struct {
	entries []deadline
	places  [][]int32 // by kind and reference: place in entries plus one, 0 when there is none
}

type deadline struct {
	at   int64
	ref  chunk.Ref
	kind waits
}

func (a deadline) before(b deadline) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	if a.kind != b.kind { // ties end in one order everywhere
		return a.kind < b.kind
	}
	return a.ref < b.ref
}

func (h *heap) next() (deadline, bool) {
	if len(h.entries) == 0 {
		return deadline{at: math.MaxInt64}, false
	}
	return h.entries[0], true
}

// set moves the deadline of (kind, ref) to at, or clears it when at is 0.
func (h *heap) set(kind waits, ref chunk.Ref, at int64) {
	places := h.places[kind]
	if int(ref) >= len(places) {
		if at == 0 {
			return
		}
		places = append(places, make([]int32, int(ref)+1-len(places)+len(places)/4)...)
		h.places[kind] = places
	}
	place := int(places[ref]) - 1
	switch {
	case place < 0 && at == 0:
	case place < 0:
		h.entries = append(h.entries, deadline{at, ref, kind})
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
		h.entries[place].at = at
		h.down(h.up(place))
	}
}

func (h *heap) put(place int, d deadline) {
	h.entries[place] = d
	h.places[d.kind][d.ref] = int32(place + 1)
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
