package raft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/journal"
)

// NotLeader is the error of operations that only the leader can execute.
type NotLeader struct {
	Leader  string // id of the leader; empty if this node knows none
	Address string // the address of the leader's transport
}

func (e *NotLeader) Error() string {
	if e.Leader == "" {
		return "this node is not the leader, and knows no leader"
	}
	return fmt.Sprintf("this node is not the leader: that is %s at %s", e.Leader, e.Address)
}

func (n *Node) notLeader() error {
	id, address := n.Leader()
	if id == n.options.ID { // it has taken office since
		id, address = "", ""
	}
	return &NotLeader{id, address}
}

// Leader returns the leader and its address, as far as this node knows. Both are empty if it knows none, or was elected itself but has not
// taken office.
func (n *Node) Leader() (id, address string) {
	if term, _ := n.office.get(); term != 0 {
		return n.options.ID, string(n.options.Transport.LocalAddr())
	}
	if id, address = n.followed(); id == n.options.ID {
		return "", ""
	}
	return id, address
}

// followed returns the leader that Raft knows. A candidate has none. The library still reports the leader that handed over to this node if
// a heartbeat arrived before the new term was on disk; until another node is elected, a dead leader would count as the present one.
func (n *Node) followed() (id, address string) {
	if n.raft.State() == raft.Candidate {
		return "", ""
	}
	at, leader := n.raft.LeaderWithID()
	return string(leader), string(at)
}

// office is this node's leadership. It begins when the node has applied everything of earlier terms, which is later than the election.
type office struct {
	entering chan struct{} // has room for one call of Lead

	mu      sync.Mutex
	term    uint64        // the term in which this node leads; 0: it does not
	pursued uint64        // the latest term in which it has begun to apply what is committed
	run     *Journal      // the latest run
	changed chan struct{} // closed and replaced when term changes
}

func (o *office) get() (term uint64, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.term, o.changed
}

// set must be called with mu held.
func (o *office) set(term uint64) {
	if o.term != term {
		o.term = term
		close(o.changed)
		o.changed = make(chan struct{})
	}
}

// enter makes this node lead in a term once everything before is applied.
func (n *Node) enter(term uint64) {
	n.office.mu.Lock()
	known := n.office.pursued == term
	n.office.pursued = term
	n.office.mu.Unlock()
	if known || n.begin() != nil {
		return
	}
	go func() {
		defer n.pending.Done()
		if n.barrier(term) != nil {
			return
		}
		n.office.mu.Lock()
		defer n.office.mu.Unlock()
		if n.leads(term) {
			n.office.set(term)
		}
	}()
}

func (n *Node) leads(term uint64) bool {
	return n.raft.State() == raft.Leader && n.raft.CurrentTerm() == term
}

// barrier waits until everything that entered the log before is applied. A nil error means that this happened in the term.
func (n *Node) barrier(term uint64) error {
	defer n.patient.stir()()
	for began := time.Now(); n.leads(term); {
		err := n.raft.Barrier(0).Error()
		if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
			n.watchTransfer(began)
			time.Sleep(transferPause)
			continue
		}
		if err == nil && !n.leads(term) {
			break
		}
		return err
	}
	return n.notLeader()
}

// leave ends the run because this node no longer leads.
func (n *Node) leave() {
	n.office.mu.Lock()
	defer n.office.mu.Unlock()
	n.office.set(0)
	if run := n.office.run; run != nil {
		run.end(journal.ErrFenced)
	}
}

// Lead waits until this node leads the cluster and has applied everything of earlier terms, and returns the journal of this run. A journal
// serves a single run: when leadership is lost, or Lead is called again, it fails permanently with ErrFenced.
func (n *Node) Lead(ctx context.Context) (*Journal, error) {
	select {
	case n.office.entering <- struct{}{}:
		defer func() { <-n.office.entering }()
	case <-ctx.Done():
		return nil, fmt.Errorf("lead the cluster: %w", ctx.Err())
	}
	for {
		if err := errors.Join(ctx.Err(), n.usable()); err != nil {
			return nil, fmt.Errorf("lead the cluster: %w", err)
		}
		term, changed := n.office.get()
		if term != 0 {
			if j := n.takeOver(term); j != nil {
				return j, nil
			}
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-n.failed:
		case <-n.closing:
		}
	}
}

// takeOver begins a run. It returns nil if the term has ended meanwhile.
func (n *Node) takeOver(term uint64) *Journal {
	n.office.mu.Lock()
	previous := n.office.run
	n.office.mu.Unlock()
	if previous != nil {
		previous.end(journal.ErrFenced)
		previous.appending <- struct{}{} // from here on it begins no append
		<-previous.appending
		if previous.term == term { // an append in transit must arrive before the new run reads the last number
			if n.begin() != nil {
				return nil
			}
			err := n.barrier(term)
			n.pending.Done()
			if err != nil {
				return nil
			}
		}
	}
	n.office.mu.Lock()
	defer n.office.mu.Unlock()
	if n.office.term != term {
		return nil
	}
	j := &Journal{node: n, term: term, appending: make(chan struct{}, 1), ended: make(chan struct{})}
	j.last.Store(n.machine.last())
	n.office.run = j
	return j
}

// Journal is the journal of one run of this node as the leader.
type Journal struct {
	node *Node
	term uint64

	appending chan struct{} // has room for one append, so that one is in flight
	last      atomic.Uint64

	state struct {
		sync.Mutex
		closed bool
		failed error
	}
	ended chan struct{} // closed with state.failed or state.closed
}

var _ journal.Journal = (*Journal)(nil)

// transferPause is how long an append waits before it checks again whether a hand-over has ended.
const transferPause = 5 * time.Millisecond

// transferMost is the longest time for which Raft may refuse appends and barriers during a hand-over. A hand-over takes two election
// timeouts and one exchange with the next leader.
const transferMost = 10 * time.Second

// watchTransfer fails the node if Raft has refused everything for a hand-over since began. Version 1.8.0 of the library may never notice
// the end of a hand-over: if a second one to the same follower begins while an exchange with that follower hangs, and leadership is then
// lost. Whenever the node leads again, it refuses everything but still sends heartbeats, so that its followers wait for it. Source:
// https://github.com/hashicorp/raft/issues/696.
func (n *Node) watchTransfer(began time.Time) {
	if time.Since(began) > transferMost {
		n.fail(fmt.Errorf("%w: Raft has refused everything for %s because a hand-over does not end", ErrReopen, transferMost))
	}
}

// ErrUnknown is part of the error of an append whose outcome is unknown: a later leader may or may not find the entry in the journal.
var ErrUnknown = errors.New("whether the entry will be durable is unknown")

// Ended returns a channel that is closed when the run has ended: leadership was lost, the node failed, or the journal was closed.
func (j *Journal) Ended() <-chan struct{} { return j.ended }

// Term returns the Raft term in which this run leads.
func (j *Journal) Term() uint64 { return j.term }

// end makes the journal unusable, and returns the error for the caller.
func (j *Journal) end(cause error) error {
	j.state.Lock()
	defer j.state.Unlock()
	if j.state.failed == nil {
		if err := j.node.Err(); err != nil {
			cause = err
		}
		j.state.failed = cause
		if !j.state.closed {
			close(j.ended)
		}
	}
	return fmt.Errorf("%w: %w", journal.ErrFailed, j.state.failed)
}

func (j *Journal) usable() error {
	j.state.Lock()
	defer j.state.Unlock()
	if j.state.closed {
		return journal.ErrClosed
	}
	if j.state.failed != nil {
		return fmt.Errorf("%w: %w", journal.ErrFailed, j.state.failed)
	}
	return j.node.usable()
}

// Append implements journal.Journal. When it returns nil, a majority of the voters, including this node, has the entry on disk.
func (j *Journal) Append(ctx context.Context, next uint64, batch []byte) error {
	if err := j.append(ctx, next, batch); err != nil {
		return fmt.Errorf("append entry %d: %w", next, err)
	}
	return nil
}

func (j *Journal) append(ctx context.Context, next uint64, batch []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case j.appending <- struct{}{}:
		defer func() { <-j.appending }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := j.usable(); err != nil {
		return err
	}
	if last := j.last.Load(); next != last+1 {
		return fmt.Errorf("%w: the last one is %d", journal.ErrOutOfOrder, last)
	}
	if len(batch) > journal.MaxBatchBytes {
		return fmt.Errorf("batch of %d bytes, at most %d allowed", len(batch), journal.MaxBatchBytes)
	}
	data := encodeCommand(next, j.term, batch)
	for began := time.Now(); ; {
		err := j.commit(ctx, data)
		switch {
		case err == nil:
			j.last.Store(next)
			return nil
		case errors.Is(err, raft.ErrLeadershipTransferInProgress): // nothing was written; this node may continue to lead
			j.node.watchTransfer(began)
			select {
			case <-time.After(transferPause):
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		case errors.Is(err, journal.ErrClosed):
			return err
		case errors.Is(err, raft.ErrNotLeader), errors.Is(err, errStale): // nothing was written, or nothing that counts
			return j.end(journal.ErrFenced)
		case errors.Is(err, raft.ErrLeadershipLost):
			err = journal.ErrFenced
		}
		_ = j.end(err) // the cause of this failure may already have ended the run, but the outcome of this append is unknown all the same
		return fmt.Errorf("%w: %w: %w", journal.ErrFailed, err, ErrUnknown)
	}
}

// commit passes data to Raft, and waits until it is committed and applied.
func (j *Journal) commit(ctx context.Context, data []byte) error {
	if err := j.node.begin(); err != nil {
		return err
	}
	defer j.node.patient.stir()() // before the entry is written, so that followers wait for it no longer than for the disk
	future := j.node.raft.Apply(data, 0)
	if err := j.node.await(ctx, future); err != nil {
		return err
	}
	if rejected, ok := future.Response().(error); ok {
		return rejected
	}
	return nil
}

// begin keeps Raft running until pending.Done, so that it can answer a request.
func (n *Node) begin() error {
	n.state.Lock()
	defer n.state.Unlock()
	switch {
	case n.state.closed:
		return journal.ErrClosed
	case n.state.failed != nil:
		return n.state.failed
	}
	n.pending.Add(1)
	return nil
}

// await waits for Raft's answer, after begin. If it returns early, a goroutine waits for the answer.
func (n *Node) await(ctx context.Context, future raft.Future) error {
	answer := make(chan error, 1)
	go func() {
		defer n.pending.Done()
		answer <- future.Error()
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-n.failed:
		return n.Err()
	}
}

// Read implements journal.Journal.
func (j *Journal) Read(ctx context.Context, from uint64) iter.Seq2[journal.Entry, error] {
	return j.node.entries(ctx, from, false, j.usable)
}

// Last implements journal.Journal.
func (j *Journal) Last(ctx context.Context) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := j.usable(); err != nil {
		return 0, err
	}
	return j.last.Load(), nil
}

// SaveSnapshot implements journal.Journal.
func (j *Journal) SaveSnapshot(ctx context.Context, at uint64, write func(io.Writer) error) error {
	if err := j.node.saveSnapshot(ctx, at, j.usable, write); err != nil {
		return fmt.Errorf("save snapshot after entry %d: %w", at, err)
	}
	return nil
}

// LatestSnapshot implements journal.Journal.
func (j *Journal) LatestSnapshot(ctx context.Context) (at uint64, r io.ReadCloser, err error) {
	if err := j.usable(); err != nil {
		return 0, nil, fmt.Errorf("open latest snapshot: %w", err)
	}
	return j.node.LatestSnapshot(ctx)
}

// Trim implements journal.Journal.
func (j *Journal) Trim(ctx context.Context, before uint64) error {
	if err := j.usable(); err != nil {
		return fmt.Errorf("trim before entry %d: %w", before, err)
	}
	return j.node.Trim(ctx, before)
}

// Close implements journal.Journal. The node continues, and leads until it loses an election or hands over.
func (j *Journal) Close() error {
	j.state.Lock()
	defer j.state.Unlock()
	if !j.state.closed {
		j.state.closed = true
		if j.state.failed == nil {
			close(j.ended)
		}
	}
	return nil
}
