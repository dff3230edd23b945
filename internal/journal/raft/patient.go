package raft

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// patient is a transport that delays repetitions. Raft's library informs each follower every CommitTimeout how far the log is committed,
// even if nothing has happened for hours: some seventy exchanges a second per follower, which took most of the processor time of an idle
// cluster. A message without news for its follower waits here until a caller requests something of Raft, for interval at most.
//
// A delay does not affect Raft's guarantees, since networks delay messages, too. The transport never answers on behalf of the follower, so
// a leader never wrongly considers itself confirmed. Votes and heartbeats, by which followers learn that their leader lives and majorities
// confirm it, are never delayed.
type patient struct {
	raft.Transport
	interval time.Duration
	raft     atomic.Pointer[raft.Raft] // nil: not started
	confirms confirmations

	mu      sync.Mutex
	asked   int           // requests to Raft in progress, which may append
	stirred chan struct{} // closed and replaced when the first such request begins
	told    map[raft.ServerID]told
}

// requestBytes is the size from which on a request takes no more entries. Raft's library puts 64 into one, whatever their size, and the transport gives
// each request a few seconds, in which the follower must also store them. A request that never succeeds is repeated unchanged, so a follower that lacks
// many large entries would never catch up over a slow network or with a slow disk.
const requestBytes = 1 << 20

// told is what a follower has accepted.
type told struct{ term, last, committed uint64 }

func newPatient(t raft.Transport, interval time.Duration) *patient {
	return &patient{Transport: t, interval: interval, stirred: make(chan struct{}), told: map[raft.ServerID]told{},
		confirms: newConfirmations()}
}

// stir ends all delays, and prevents new ones until done is called, because Raft is about to get a request that followers should learn at once.
func (p *patient) stir() (done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked++; p.asked == 1 {
		close(p.stirred)
		p.stirred = make(chan struct{})
	}
	return p.rest
}

func (p *patient) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked--
}

// AppendEntries implements raft.Transport.
func (p *patient) AppendEntries(id raft.ServerID, at raft.ServerAddress, request *raft.AppendEntriesRequest, answer *raft.AppendEntriesResponse) error {
	if request.LeaderCommitIndex == 0 { // a heartbeat
		return p.send(id, at, request, answer)
	}
	p.delay(id, request)
	err := p.sendInParts(id, at, request, answer)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || !answer.Success {
		delete(p.told, id)
		return err
	}
	accepted := told{request.Term, request.PrevLogEntry, request.LeaderCommitIndex}
	if n := len(request.Entries); n > 0 {
		accepted.last = request.Entries[n-1].Index
	}
	p.told[id] = accepted
	return nil
}

var errDeposed = errors.New("this node no longer leads in the term of the request")

// sendInParts sends a request as several if its entries are large. The answer is that to the last one sent.
func (p *patient) sendInParts(id raft.ServerID, at raft.ServerAddress, request *raft.AppendEntriesRequest, answer *raft.AppendEntriesResponse) error {
	for rest := *request; ; {
		part, bytes, n := rest, 0, 0
		for n < len(rest.Entries) && bytes < requestBytes {
			bytes += logSize(rest.Entries[n])
			n++
		}
		if n == len(rest.Entries) {
			return p.send(id, at, &part, answer)
		}
		last := rest.Entries[n-1]
		part.Entries = rest.Entries[:n]
		part.LeaderCommitIndex = min(rest.LeaderCommitIndex, last.Index)
		answered := raft.AppendEntriesResponse{}
		if err := p.send(id, at, &part, &answered); err != nil || !answered.Success || answered.Term > request.Term {
			*answer = answered
			return err
		}
		if r := p.raft.Load(); r != nil && (r.State() != raft.Leader || r.CurrentTerm() != request.Term) { // as the library does between two requests
			return errDeposed
		}
		rest.PrevLogEntry, rest.PrevLogTerm, rest.Entries = last.Index, last.Term, rest.Entries[n:]
	}
}

// send sends a request and records what the follower's answer confirms.
func (p *patient) send(id raft.ServerID, at raft.ServerAddress, request *raft.AppendEntriesRequest, answer *raft.AppendEntriesResponse) error {
	moment := p.confirms.now()
	err := p.Transport.AppendEntries(id, at, request, answer)
	if err == nil && answer.Term == request.Term {
		p.confirms.answered(id, answer.Term, moment)
	}
	return err
}

// delay waits while a request has no news for the follower, and this node has none either.
func (p *patient) delay(id raft.ServerID, request *raft.AppendEntriesRequest) {
	r := p.raft.Load()
	if r == nil || len(request.Entries) > 0 {
		return
	}
	p.mu.Lock()
	stirred := p.stirred
	repeats := p.asked == 0 && p.told[id] == told{request.Term, request.PrevLogEntry, request.LeaderCommitIndex}
	p.mu.Unlock()
	if !repeats || r.LastIndex() != request.PrevLogEntry || r.CommitIndex() != request.LeaderCommitIndex {
		return
	}
	enough := time.NewTimer(p.interval)
	defer enough.Stop()
	select {
	case <-stirred:
	case <-enough.C:
	}
}

var errNoPreVote = errors.New("the transport takes no preliminary votes")

// RequestPreVote implements raft.WithPreVote.
func (p *patient) RequestPreVote(id raft.ServerID, at raft.ServerAddress, request *raft.RequestPreVoteRequest, answer *raft.RequestPreVoteResponse) error {
	t, ok := p.Transport.(raft.WithPreVote)
	if !ok {
		return errNoPreVote
	}
	return t.RequestPreVote(id, at, request, answer)
}

// Close implements raft.WithClose.
func (p *patient) Close() error {
	if t, ok := p.Transport.(raft.WithClose); ok {
		return t.Close()
	}
	return nil
}
