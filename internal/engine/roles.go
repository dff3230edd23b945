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

// Log is the journal of a cluster as each node has it. One node at a time leads and appends to it; every node reads what is
// committed, and saves snapshots and trims for itself.
type Log interface {
	store
	// Follow is Read without an end: it waits for further entries until ctx is done. It ends with journal.ErrTrimmed when the node
	// has received a snapshot in place of entries that it lacked.
	Follow(ctx context.Context, from uint64) iter.Seq2[journal.Entry, error]
}

// Office is the journal of a node for as long as it leads.
type Office interface {
	journal.Journal
	// Ended is closed when the node leads no more. Appends fail from then on.
	Ended() <-chan struct{}
}

// ErrNotLeading is what commands get at a replica: nothing has happened.
var ErrNotLeading = errors.New("another node decides")

var errLeadershipLost = errors.New("the node leads no more")

// replication is the goroutines of a replica.
type replication struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// OpenReplica loads the cell from this node's latest snapshot and applies what another node appends to the log. Config.Journal is not
// used. Lead makes the engine decide.
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

// Lead has a replica decide, once it has applied all that is in j. It returns when commands can be executed. When an append fails, it
// is unknown whether the entry will be committed: the engine drops what memory holds beyond the log and becomes a replica again.
func (e *Engine) Lead(ctx context.Context, j Office) error {
	e.role.Lock()
	defer e.role.Unlock()
	switch {
	case e.context.Err() != nil:
		return e.stopError()
	case e.replicates == nil:
		return errors.New("the engine decides already")
	}
	e.stopReplicating()
	err := e.catchUp(ctx, j)
	if err == nil {
		e.time.decide()
		if ahead := e.time.ownAhead(); ahead.Abs() > time.Second {
			e.log.Warn("the clock of this node, which decides now, is not at the time of the cluster: the time is drawn to it slowly", "clock_ahead", ahead.Round(time.Millisecond))
		}
		err = e.decideWith(ctx, j)
	}
	if err != nil {
		e.replicateAgain()
		return fmt.Errorf("take over after entry %d: %w", e.durable.reached.Load(), err)
	}
	return nil
}

// StepDown makes the engine a replica again. What was decided becomes durable first.
func (e *Engine) StepDown() {
	if r := e.run.Load(); r != nil && e.cluster != nil {
		r.end()
		<-r.over
	}
}

// decideWith begins a run. In a cluster the engine becomes a replica again behind it.
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

// replicateAgain goes on from what is known to be committed. A run that failed leaves changes in memory that may never be
// committed: the cell is built anew, up to the last entry that followers have been told of.
func (e *Engine) replicateAgain() {
	if e.context.Err() != nil {
		return // it is being closed
	}
	e.time.follow()
	if e.seq.ahead() {
		if err := e.loadUpTo(e.context, e.fed.reached.Load()); err != nil {
			if e.context.Err() == nil { // otherwise it was interrupted by Close
				e.fail(err)
			}
			return
		}
	}
	e.durable.again() // not before: no caller may wait for an entry with the number of one that is void
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
				e.log.Error("this node no longer follows the journal and has to be restarted", "error", err)
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

// catchUp applies what is in a journal that this node alone appends to from now on.
func (e *Engine) catchUp(ctx context.Context, j journal.Journal) error {
	return e.applyAll(ctx, j.Read)
}

// applyAll applies the entries that this node lacks. When a snapshot has taken the place of some, it goes on behind that.
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

// apply folds an entry that another node has decided into the state, and tells the followers of its events.
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

// expireOld removes old records from a replica's archive. A run does it between two batches.
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
