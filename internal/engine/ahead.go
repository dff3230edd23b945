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

// A replica may let ended records leave memory only behind its own archive. The node that decides has them leave in steps of archiveLocked, each in an entry of
// its own, and a replica that stored them step by step would write a table of the archive for each: merging so many small tables cost many times what the changes
// themselves did. So a replica stores records as the node that decides does, many at a time and beside its work, only a little earlier: when an entry has
// them leave memory, they are in the archive already.

// aheadBy is how much earlier a replica stores records: a few passes, so that it hardly ever has to store some while an entry waits.
const aheadBy = 2 * time.Second

// ahead says how far the archive of a replica is. It counts in the order of their ends the records that ended since the cell was loaded or this node became a
// replica, and those that were in memory then.
type ahead struct {
	storing sync.Mutex   // held from the look at the state until what it had is stored
	ended   endedRecords // of the present pass; guarded by storing

	// These are guarded by Engine.stateLock.
	gone      int    // so many have left memory
	stored    int    // so many are in the archive
	forgotten uint64 // Kernel.Forgotten once they have left memory
}

// begin forgets what was stored, which is then stored once more. The caller holds Engine.stateLock.
func (x *ahead) begin(c *cell.Cell) { x.gone, x.stored, x.forgotten = 0, 0, c.Forgotten() }

// run is the goroutine of a replica that stores records before they have to leave memory.
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
			case ctx.Err() != nil, errors.Is(err, archive.ErrFailed): // the next entry with which records leave memory ends the engine
				return
			default:
				e.log.Error("the archive refused a write: ended records stay in memory until it accepts them", "error", err)
				full, next = false, archiveRetry
			}
		}
		timer.Reset(next)
	}
}

// store makes the records durable that come next, at least so many that `leave` can leave memory. full says that there may be more.
func (x *ahead) store(ctx context.Context, e *Engine, leave int) (full bool, err error) {
	x.storing.Lock()
	defer x.storing.Unlock()
	e.stateLock.RLock()
	stored, forgotten := x.stored, x.forgotten
	must := x.gone + leave - stored
	e.stateLock.RUnlock()
	if leave > 0 && must <= 0 { // they were being stored
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

// keep returns once the n records that ended first are in this node's archive. The node that decides has them in its own and has said that they may
// leave memory. An archive that refuses for now holds up this node, and no other.
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
