package raft

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// patient is a transport that delays repetitions. Raft's library tells each follower every CommitTimeout how far the log is committed, also when
// nothing has happened for hours: some seventy exchanges a second for each follower, which took most of the processor time of an idle cluster.
// A message that adds nothing to one that the follower has accepted waits here until a caller asks Raft for something, for interval at most.
//
// A delay changes nothing that Raft relies on, since networks delay messages, too. Nothing is answered here in place of the
// follower, so a leader never takes itself for confirmed. Heartbeats, by which followers know that their leader lives and majorities confirm it, and votes
// are never delayed.
type patient struct {
	raft.Transport
	interval time.Duration
	raft     atomic.Pointer[raft.Raft] // nil: it has not started
	confirms confirmations

	mu      sync.Mutex
	asked   int           // requests to Raft under way, which may append
	stirred chan struct{} // closed and replaced when there is one
	told    map[raft.ServerID]told
}

// told is what a follower has accepted.
type told struct{ term, last, committed uint64 }

func newPatient(t raft.Transport, interval time.Duration) *patient {
	return &patient{Transport: t, interval: interval, stirred: make(chan struct{}), told: map[raft.ServerID]told{},
		confirms: newConfirmations()}
}

// stir ends all delays, and lets none begin before done is called: Raft is asked for something that followers should learn at once.
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
	err := p.send(id, at, request, answer)
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

// send notes what the follower's answer confirms.
func (p *patient) send(id raft.ServerID, at raft.ServerAddress, request *raft.AppendEntriesRequest, answer *raft.AppendEntriesResponse) error {
	moment := p.confirms.now()
	err := p.Transport.AppendEntries(id, at, request, answer)
	if err == nil && answer.Term == request.Term {
		p.confirms.answered(id, answer.Term, moment)
	}
	return err
}

// delay waits while a request tells the follower nothing new, and this node has nothing else to tell it.
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
