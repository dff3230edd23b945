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

// A node that jumps to a snapshot from another one has not stored the records that left memory before that snapshot. Its archive says so durably,
// before the node uses the state (archive.Coverage): until a copy from another node is complete, other nodes answer for it (archives.go, fill.go).

// coverage is the coverage of this node's archive.
type coverage struct {
	marking sync.Mutex // held from SetMark until the mark is stored
	writing sync.Mutex // held while a change is stored

	lock   sync.Mutex
	stored bool // the archive has one: this is or was a node of a cluster
	now    archive.Coverage
	missed int64         // when the records ended, at the earliest, that became missing since ask
	lacks  chan struct{} // receives when records become missing
}

// open reads what the archive has stored.
func (x *coverage) open(a archive.Archive) (err error) {
	x.lacks = make(chan struct{}, 1)
	x.now, x.stored, err = a.Coverage()
	return err
}

// known reports whether this is or was a node of a cluster.
func (x *coverage) known() bool {
	_, known := x.get()
	return known
}

func (x *coverage) get() (c archive.Coverage, known bool) {
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.now, x.stored
}

// ask is called before another node is asked for a page.
func (x *coverage) ask() archive.Coverage {
	x.lock.Lock()
	defer x.lock.Unlock()
	x.missed = math.MaxInt64
	return x.now
}

// complete reports whether the archive has everything that left memory.
func (x *coverage) complete() bool {
	c, _ := x.get()
	return !c.Lacks
}

func (x *coverage) set(c archive.Coverage) {
	x.lock.Lock()
	x.now, x.stored = c, true
	x.lock.Unlock()
}

// coverFrom is called before this node goes on from a snapshot. What left memory before that is in the archive only if the node has saved the
// snapshot itself.
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

// isNew reports whether an archive that says nothing about its coverage lacks records: that of a node which has just joined does, that of a
// single machine which becomes a cluster does not.
func (e *Engine) isNew(c *cell.Cell, at uint64) (bool, error) {
	mark, _, err := e.config.Archive.Mark()
	return mark.Forgotten < c.Forgotten() || at > 0 && mark.Journal == 0, err
}

// coverUpTo is called before this node saves a snapshot of its own: it has stored what left memory before that.
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

// storeCoverage waits for an archive that refuses for now.
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

// nextEnd returns a time before which none of the records ended that are in memory, or will end.
func nextEnd(c *cell.Cell) domain.Time {
	v := c.View()
	if first := v.Ended(0, 1, math.MaxInt64); len(first) > 0 {
		return first[0].Ended
	}
	return c.Last()
}

// ArchiveLacks reports whether this node's archive lacks records, and from which time on they ended.
func (e *Engine) ArchiveLacks() (from time.Time, lacks bool) {
	c, _ := e.covers.get()
	return time.UnixMilli(c.From).UTC(), c.Lacks
}

// AcceptArchive makes this node's archive count as complete: no node has the records that it lacks any more. Reads say from then on that these do
// not exist.
func (e *Engine) AcceptArchive(ctx context.Context) error {
	e.covers.writing.Lock()
	defer e.covers.writing.Unlock()
	now, known := e.covers.get()
	if !known || !now.Lacks {
		return nil
	}
	e.log.Warn("the loss of archived records was accepted: nothing is known of what ended from this time on, up to the entry at which the node began", "from", time.UnixMilli(now.From).UTC(), "entry", now.Entry)
	_, err := e.completeArchive(ctx, nil, now)
	return err
}

// completeArchive stores the last records of a copy. The caller holds covers.writing.
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

// markComplete stores the mark of an archive that has everything: without it, the next start would take it for an old one.
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
