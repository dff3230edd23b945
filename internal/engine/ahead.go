package engine

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
)

// A replica must store ended records in its own archive before it drops them from memory. The leader drops them in steps of archiveLocked records,
// one journal entry per step. A replica that stored one step at a time would write a small archive table for each step, and merging those tables cost
// far more than the changes themselves. So a replica stores records as the leader does, in large batches beside its other work, but slightly earlier:
// when an entry drops records from memory, they are already archived.

// aheadBy is how much earlier than the leader a replica stores records. It spans a few passes, so that an entry rarely has to wait for a write.
const aheadBy = 2 * time.Second

// ahead tracks the progress of a replica's archive. Positions count ended records in the order of their ends, starting with those that were in memory
// when the cell was loaded or this node became a replica.
type ahead struct {
	storing sync.Mutex   // held from reading the state until the records are stored
	ended   endedRecords // of the current pass; guarded by storing

	// The fields below are guarded by Engine.stateLock.
	gone      int    // number of records that have left memory
	stored    int    // number of records in the archive
	forgotten uint64 // Kernel.Forgotten once the stored records have left memory
}

// begin resets the progress, so that records that are already archived are stored again. The caller holds Engine.stateLock.
func (x *ahead) begin(c *cell.Cell) { x.gone, x.stored, x.forgotten = 0, 0, c.Forgotten() }

// run is the goroutine of a replica that archives records before they have to leave memory.
func (x *ahead) run(ctx context.Context, e *Engine) {
	timer := time.NewTimer(archiveEvery)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		next, full := archiveEvery, e.config.Short() == nil
		for full {
			var err error
			full, err = x.store(ctx, e, 0)
			switch {
			case err == nil:
			case ctx.Err() != nil, errors.Is(err, archive.ErrFailed): // the next entry that drops records stops the engine
				return
			default:
				e.log.Error("the archive refused a write: ended records stay in memory until it accepts them", "error", err)
				full, next = false, archiveRetry
			}
		}
		timer.Reset(next)
	}
}

// store archives the next records, at least as many as are needed for `leave` more to leave memory. full reports that there may be more.
func (x *ahead) store(ctx context.Context, e *Engine, leave int) (full bool, err error) {
	x.storing.Lock()
	defer x.storing.Unlock()
	e.stateLock.RLock()
	stored, forgotten := x.stored, x.forgotten
	must := x.gone + leave - stored
	e.stateLock.RUnlock()
	if leave > 0 && must <= 0 { // a concurrent call has stored them
		return false, nil
	}
	next := &x.ended
	next.begin(stored, forgotten)
	if err := next.take(ctx, e, must, math.MaxInt64); err != nil {
		return false, err
	}
	if must > 0 && next.taken == 0 {
		return false, errNotEnded
	}
	before := domain.TimeOf(e.Now().Add(min(0, aheadBy-e.config.EndedLinger)))
	if err := next.take(ctx, e, archiveMost, before); err != nil || next.taken == 0 {
		return false, err
	}
	if err := e.store(ctx, next); err != nil {
		return false, err
	}
	e.stateLock.Lock()
	defer e.stateLock.Unlock()
	x.stored, x.forgotten = next.from+next.taken, next.forgotten
	return next.full, nil
}

var errNotEnded = errors.New("more records leave memory than have ended")

// keep returns once the first n ended records in memory are in this node's archive. The leader has already archived them and has told replicas to
// drop them from memory. An archive that temporarily refuses writes delays only this node.
func (x *ahead) keep(ctx context.Context, e *Engine, n int) error {
	for {
		e.stateLock.RLock()
		kept := x.stored-x.gone >= n
		e.stateLock.RUnlock()
		if kept {
			return nil
		}
		_, err := x.store(ctx, e, n)
		if err == nil {
			continue
		}
		if errors.Is(err, archive.ErrFailed) || errors.Is(err, errNotEnded) || ctx.Err() != nil {
			return err
		}
		e.log.Error("the archive refused a write: this node falls behind until it accepts them", "error", err)
		select {
		case <-time.After(archiveRetry):
		case <-ctx.Done():
		}
	}
}
