package raft

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// rounds ask a majority whether this node still leads. One round is in progress at a time; callers that come meanwhile share the next.
type rounds struct {
	mu      sync.Mutex
	running bool
	next    *round
}

type round struct {
	done   chan struct{}
	number uint64
	err    error
}

// VerifyRead returns the number of the entry that a linearizable read, begun before the call, must have applied: no append that was
// acknowledged before the call, by any leader, has a higher one. Only the leader can answer, and only after a majority has confirmed that
// it still leads: others get *NotLeader. A reader at another node asks the leader, and waits for the entry at its own.
//
// The number is read before the majority is asked. A later leader could have acknowledged something only after a majority had left this
// term, which the answers would show. Within the term, everything acknowledged was applied here before.
func (n *Node) VerifyRead(ctx context.Context) (number uint64, err error) {
	n.rounds.mu.Lock()
	if n.rounds.next == nil {
		n.rounds.next = &round{done: make(chan struct{})}
	}
	r := n.rounds.next
	if !n.rounds.running {
		n.rounds.running = true
		go n.verify()
	}
	n.rounds.mu.Unlock()
	select {
	case <-r.done:
		if r.err != nil {
			return 0, fmt.Errorf("verify a read: %w", r.err)
		}
		return r.number, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("verify a read: %w", ctx.Err())
	}
}

// verify runs rounds until no caller has joined the next one.
func (n *Node) verify() {
	for {
		n.rounds.mu.Lock()
		r := n.rounds.next
		n.rounds.next = nil
		n.rounds.running = r != nil
		n.rounds.mu.Unlock()
		if r == nil {
			return
		}
		r.number, r.err = n.askMajority()
		close(r.done)
	}
}

func (n *Node) askMajority() (number uint64, err error) {
	term, _ := n.office.get()
	if term == 0 {
		return 0, n.notLeader()
	}
	number = n.machine.last()
	if err := n.begin(); err != nil {
		return 0, err
	}
	defer n.pending.Done()
	for moment := n.patient.confirms.begin(); ; {
		if err := n.raft.VerifyLeader().Error(); err != nil { // also sends heartbeats
			return 0, fmt.Errorf("%w (%w)", n.notLeader(), err)
		}
		if n.raft.CurrentTerm() != term { // the round was in a later term, in which this node leads again
			return 0, n.notLeader()
		}
		if n.confirmedWithin(n.options.ElectionTimeout/10, term, moment) {
			return number, nil
		}
	}
}

// confirmedWithin waits until a majority of the voters has confirmed the term after the moment.
func (n *Node) confirmedWithin(limit time.Duration, term, moment uint64) bool {
	var enough <-chan time.Time // no timer in the usual case
	for {
		next := n.patient.confirms.next()
		if n.confirmed(term, moment) {
			return true
		}
		if enough == nil {
			enough = time.After(limit)
		}
		select {
		case <-next:
		case <-enough:
			return false
		}
	}
}

// confirmed reports whether a majority of the voters has confirmed the term after the moment.
func (n *Node) confirmed(term, moment uint64) bool {
	voters, confirm := 0, 0
	for _, s := range n.servers() {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if string(s.ID) == n.options.ID || n.patient.confirms.since(s.ID, term, moment) {
			confirm++
		}
	}
	return confirm > voters/2
}
