package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
)

// A node that jumps to another node's snapshot has not archived the records that left memory before that snapshot. Before the node uses the new
// state, it marks its archive as incomplete on disk (archive.Coverage). Until it has copied the missing records from another node, other nodes
// answer archive reads (archives.go, fill.go).

// coverage tracks which records this node's archive contains.
type coverage struct {
	marking sync.Mutex // held from SetMark until the mark is stored
	writing sync.Mutex // held while a change is stored

	lock   sync.Mutex
	stored bool // the archive has a coverage: this node is or was in a cluster
	now    archive.Coverage
	missed int64         // earliest end of the records that became missing since the last ask
	lacks  chan struct{} // receives when records become missing
}

// open reads the coverage stored in the archive.
func (x *coverage) open(a archive.Archive) (err error) {
	x.lacks = make(chan struct{}, 1)
	x.now, x.stored, err = a.Coverage()
	return err
}

// known reports whether this node is or was in a cluster.
func (x *coverage) known() bool {
	_, known := x.get()
	return known
}

func (x *coverage) get() (c archive.Coverage, known bool) {
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.now, x.stored
}

// ask must be called before asking another node for a page. It resets missed.
func (x *coverage) ask() archive.Coverage {
	x.lock.Lock()
	defer x.lock.Unlock()
	x.missed = math.MaxInt64
	return x.now
}

// complete reports whether the archive has every record that left memory.
func (x *coverage) complete() bool {
	c, _ := x.get()
	return !c.Lacks
}

func (x *coverage) set(c archive.Coverage) {
	x.lock.Lock()
	x.now, x.stored = c, true
	x.lock.Unlock()
}

// coverFrom is called before this node continues from a snapshot. Records that left memory before that snapshot are in the archive only if this
// node saved the snapshot itself.
func (e *Engine) coverFrom(ctx context.Context, c *cell.Cell, at uint64) error {
	e.covers.writing.Lock()
	defer e.covers.writing.Unlock()
	now, known := e.covers.get()
	missed := now.Next
	switch {
	case !known:
		var err error
		if now.Lacks, err = e.isNew(c, at); err != nil {
			return err
		}
	case at <= now.Entry:
		return nil
	case now.Lacks:
		now.From = min(now.From, now.Next)
	default:
		now.Lacks, now.From = true, now.Next
	}
	now.Entry, now.Next = at, int64(nextEnd(c))
	if err := e.storeCoverage(ctx, now); err != nil {
		return err
	}
	if now.Lacks {
		e.covers.lock.Lock()
		e.covers.missed = min(e.covers.missed, missed)
		e.covers.lock.Unlock()
		signal(e.covers.lacks)
		e.log.Info("this node's archive lacks records that ended before it received its state; it copies them from another node", "from", time.UnixMilli(now.From).UTC(), "entry", at)
	}
	return nil
}

// isNew reports whether an archive without a stored coverage is incomplete. It is on a node that has just joined; it is not on a single machine
// that becomes a cluster.
func (e *Engine) isNew(c *cell.Cell, at uint64) (bool, error) {
	mark, _, err := e.config.Archive.Mark()
	return mark.Forgotten < c.Forgotten() || at > 0 && mark.Journal == 0, err
}

// coverUpTo is called before this node saves a snapshot of its own, once it has archived everything that left memory before that snapshot.
func (e *Engine) coverUpTo(ctx context.Context, at uint64, next domain.Time) error {
	e.covers.writing.Lock()
	defer e.covers.writing.Unlock()
	now, known := e.covers.get()
	if !known || at <= now.Entry {
		return nil
	}
	now.Entry, now.Next = at, int64(next)
	return e.storeCoverage(ctx, now)
}

// storeCoverage stores c. It retries while the archive temporarily refuses writes.
func (e *Engine) storeCoverage(ctx context.Context, c archive.Coverage) error {
	for {
		err := e.config.Archive.SetCoverage(ctx, c)
		if err == nil {
			e.covers.set(c)
			return nil
		}
		if errors.Is(err, archive.ErrFailed) || ctx.Err() != nil {
			return err
		}
		e.log.Error("the archive refused a write: this node falls behind until it accepts them", "error", err)
		select {
		case <-time.After(archiveRetry):
		case <-ctx.Done():
		}
	}
}

// nextEnd returns a lower bound for the ends of all records that are in memory or will end.
func nextEnd(c *cell.Cell) domain.Time {
	v := c.View()
	if first := v.Ended(0, 1, math.MaxInt64); len(first) > 0 {
		return first[0].Ended
	}
	return c.Last()
}

// ArchiveLacks reports whether this node's archive is incomplete, and the time from which on ended records may be missing.
func (e *Engine) ArchiveLacks() (from time.Time, lacks bool) {
	c, _ := e.covers.get()
	return time.UnixMilli(c.From).UTC(), c.Lacks
}

// completeArchive stores the last records of a copy and marks the archive as complete. The caller holds covers.writing.
func (e *Engine) completeArchive(ctx context.Context, records []archive.Record, c archive.Coverage) (added int, err error) {
	if err := e.markComplete(ctx); err != nil {
		return 0, err
	}
	c.Lacks, c.From = false, 0
	if added, err = e.config.Archive.Add(ctx, records, c); err == nil {
		e.covers.set(c)
	}
	return added, err
}

// markComplete stores the mark of a complete archive. Without it, the next start would take the archive for an outdated one.
func (e *Engine) markComplete(ctx context.Context) error {
	e.covers.marking.Lock()
	defer e.covers.marking.Unlock()
	mark, _, err := e.config.Archive.Mark()
	if err != nil {
		return fmt.Errorf("read the mark of the archive: %w", err)
	}
	e.stateLock.RLock()
	forgotten := e.seq.Cell().Forgotten()
	e.stateLock.RUnlock()
	e.config.Archive.SetMark(archive.Mark{Forgotten: max(mark.Forgotten, forgotten), Journal: max(mark.Journal, e.durable.reached.Load())})
	return e.config.Archive.Put(ctx, nil)
}
