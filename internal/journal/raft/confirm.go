package raft

import (
	"sync"

	"github.com/hashicorp/raft"
)

// confirmations record which followers have confirmed a leader since a moment. Raft's library is less precise: each answer of a follower
// completes every waiting VerifyLeader, even one that began after the request was sent. When a leader stood still for seconds, answers from
// before are in its sockets; meanwhile another leader may have been elected and have acknowledged changes.
//
// A follower whose answer has the leader's term was in that term when it answered, and therefore after the request was sent. By then it had
// not voted for a later leader. If a majority of the voters has answered requests sent after a moment, no later leader was elected before that moment.
type confirmations struct {
	mu     sync.Mutex
	moment uint64 // counts the reads to be confirmed
	latest map[raft.ServerID]confirmation
	came   chan struct{} // closed and replaced with each confirmation
}

func newConfirmations() confirmations {
	return confirmations{latest: map[raft.ServerID]confirmation{}, came: make(chan struct{})}
}

// confirmation is what a follower's answer proves: after the moment it was in the term.
type confirmation struct{ term, moment uint64 }

// begin returns a new moment.
func (c *confirmations) begin() (moment uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moment++
	return c.moment
}

// now returns the latest moment, which is that of a request sent after this call.
func (c *confirmations) now() (moment uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moment
}

// answered records that a follower was in a term after a moment.
func (c *confirmations) answered(id raft.ServerID, term, moment uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.latest[id]; term > before.term || term == before.term && moment > before.moment {
		c.latest[id] = confirmation{term, moment}
		close(c.came)
		c.came = make(chan struct{})
	}
}

// next returns a channel that is closed with the next confirmation.
func (c *confirmations) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.came
}

// since reports whether a follower was in a term after a moment.
func (c *confirmations) since(id raft.ServerID, term, moment uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	latest, ok := c.latest[id]
	return ok && latest.term == term && latest.moment >= moment
}
