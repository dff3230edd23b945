package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/journal"
)

// Log is a cluster's journal as each node has it. One node at a time leads and appends; every node reads the committed entries, and
// saves snapshots and trims for itself.
type Log interface {
	store
	// Follow is Read without an end: it waits for further entries until ctx is done. It ends with journal.ErrTrimmed when the node
	// has received a snapshot in place of entries that it lacked.
	Follow(ctx context.Context, from uint64) iter.Seq2[journal.Entry, error]
}

// Office is a node's journal while it leads.
type Office interface {
	journal.Journal
	// Ended is closed when the node stops leading. Appends fail from then on.
	Ended() <-chan struct{}
}

// ErrNotLeading is the error of commands on a replica: nothing has happened.
var ErrNotLeading = errors.New("another node decides")

var errLeadershipLost = errors.New("the node no longer leads")

// replication tracks the goroutines of a replica.
type replication struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// OpenReplica loads the cell from this node's latest snapshot and applies what another node appends to the log. It does not use
// Config.Journal. Lead makes the engine decide.
func OpenReplica(ctx context.Context, config Config, log Log) (*Engine, error) {
	if config.Clock != nil {
		return nil, errors.New("a cluster runs on real time: a clock that tests move is for a single node")
	}
	e, err := open(ctx, config, log, log)
	if err != nil {
		return nil, err
	}
	e.time = newClusterTime(e.config.Now, e.seq.Cell().Last().Std())
	e.replicate()
	e.done.Go(func() { e.fillArchive(e.context) })
	return e, nil
}

// Lead makes a replica decide after it has applied everything in j. It returns once commands can be executed. When an append fails,
// it is unknown whether the entry will be committed: the engine drops the state in memory beyond the log and becomes a replica again.
func (e *Engine) Lead(ctx context.Context, j Office) error {
	e.role.Lock()
	defer e.role.Unlock()
	switch {
	case e.context.Err() != nil:
		return e.stopError()
	case e.replicates == nil:
		return errors.New("the engine already decides")
	}
	e.stopReplicating()
	err := e.catchUp(ctx, j)
	if err == nil {
		e.time.decide()
		if ahead := e.time.ownAhead(); ahead.Abs() > time.Second {
			e.log.Warn("the clock of this node, which leads now, differs from the time of the cluster, which approaches it slowly", "clock_ahead", ahead.Round(time.Millisecond))
		}
		err = e.decideWith(ctx, j)
	}
	if err != nil {
		e.replicateAgain()
		return fmt.Errorf("take over after entry %d: %w", e.durable.reached.Load(), err)
	}
	return nil
}

// StepDown makes the engine a replica again, after everything decided is durable.
func (e *Engine) StepDown() {
	if r := e.run.Load(); r != nil && e.cluster != nil {
		r.end()
		<-r.over
	}
}

// decideWith begins a run. In a cluster, the engine becomes a replica again when the run ends.
func (e *Engine) decideWith(ctx context.Context, j journal.Journal) error {
	r := newRun(e, j)
	if err := r.start(ctx); err != nil {
		r.close()
		return err
	}
	e.run.Store(r)
	if e.cluster != nil {
		e.done.Go(func() {
			<-r.stopped
			r.close()
			e.role.Lock()
			defer e.role.Unlock()
			e.run.Store(nil)
			e.replicateAgain()
			close(r.over)
		})
	}
	return nil
}

// replicateAgain resumes replication from what is known to be committed. A failed run leaves changes in memory that may never be
// committed; the cell is then rebuilt up to the last entry that followers have received.
func (e *Engine) replicateAgain() {
	if e.context.Err() != nil {
		return // the engine is being closed
	}
	e.time.follow()
	if e.seq.ahead() {
		if err := e.loadUpTo(e.context, e.fed.reached.Load()); err != nil {
			if e.context.Err() == nil { // otherwise Close interrupted it
				e.fail(err)
			}
			return
		}
	}
	e.durable.again() // only now: a caller must not wait for an entry under the number of a void one
	e.fed.again()
	e.replicate()
}

func (e *Engine) replicate() {
	ctx, cancel := context.WithCancel(e.context)
	x := &replication{cancel: cancel}
	e.replicates = x
	e.stateLock.Lock()
	e.ahead.begin(e.seq.Cell())
	e.stateLock.Unlock()
	x.done.Go(func() {
		if err := e.applyAll(ctx, e.cluster.Follow); err != nil && ctx.Err() == nil {
			if _, later := errors.AsType[*kernel.LaterRelease](err); later {
				e.log.Error("this node no longer follows the journal: the other nodes run a later release", "error", err)
			} else {
				e.log.Error("this node no longer follows the journal and must be restarted", "error", err)
			}
			e.fail(err)
		}
	})
	x.done.Go(func() { e.ahead.run(ctx, e) })
	e.done.Go(x.done.Wait)
	e.done.Go(func() { e.expireOld(ctx) })
}

func (e *Engine) stopReplicating() {
	e.replicates.cancel()
	e.replicates.done.Wait()
	e.replicates = nil
}

// catchUp applies the entries of a journal to which only this node appends from now on.
func (e *Engine) catchUp(ctx context.Context, j journal.Journal) error {
	return e.applyAll(ctx, j.Read)
}

// applyAll applies the entries that this node lacks. If a snapshot has replaced some of them, it loads the snapshot and continues
// after it.
func (e *Engine) applyAll(ctx context.Context, read func(ctx context.Context, from uint64) iter.Seq2[journal.Entry, error]) error {
	for {
		err := e.applyEach(ctx, read(ctx, e.durable.reached.Load()+1))
		if !errors.Is(err, journal.ErrTrimmed) {
			return err
		}
		if err := e.jump(ctx); err != nil {
			return err
		}
	}
}

func (e *Engine) applyEach(ctx context.Context, entries iter.Seq2[journal.Entry, error]) error {
	for entry, err := range entries {
		if err != nil {
			return err
		}
		if err := e.apply(ctx, entry); err != nil {
			return fmt.Errorf("apply journal entry %d: %w", entry.Number, err)
		}
	}
	return nil
}

// apply applies an entry that another node has decided, and feeds its events to the followers.
func (e *Engine) apply(ctx context.Context, entry journal.Entry) error {
	forgotten, err := kernel.Forgets(entry.Batch)
	if err != nil {
		return err
	}
	if err := e.ahead.keep(ctx, e, forgotten); err != nil {
		return err
	}
	e.stateLock.Lock()
	g, err := e.seq.Apply(entry.Number, entry.Batch, e.followed())
	if err != nil {
		e.stateLock.Unlock()
		return err
	}
	e.ahead.gone += forgotten
	snapshot := e.freezeIfDue(g)
	e.stateLock.Unlock()
	if e.time != nil {
		e.time.applied(g.At.Std())
	}
	e.durable.reached.Store(g.Number)
	e.tell(g)
	if snapshot != nil {
		e.snapshots <- snapshot
	}
	return nil
}

// expireOld removes expired records from a replica's archive. On a leader, the run does so between two batches.
func (e *Engine) expireOld(ctx context.Context) {
	for every := time.NewTicker(expireEvery); ; {
		select {
		case <-every.C:
		case <-ctx.Done():
			every.Stop()
			return
		}
		if err := e.expire(ctx); err != nil && ctx.Err() == nil {
			e.log.Error("old records could not be removed from the archive", "error", err)
		}
	}
}
