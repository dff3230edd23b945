package engine

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/journal"
)

// Frozen is the state as it was after a journal entry, to be written while the engine goes on.
type Frozen struct {
	Entry     uint64
	Level     uint
	Last      domain.Time // of the last transaction
	Forgotten uint64      // records that had left memory for the archive
	Next      domain.Time // what leaves memory later ended then or later
	Audited   uint64      // number of the last entry of the audit log that had left memory

	snapshot *kernel.Snapshot
}

// Write writes the state in the form of snapshots.
func (f *Frozen) Write(w io.Writer) error { return f.snapshot.Write(w) }

func freeze(c *cell.Cell, at uint64) *Frozen {
	v := c.View()
	return &Frozen{
		Entry: at, Level: c.Level(), Last: c.Last(), Forgotten: c.Forgotten(), Next: nextEnd(c), Audited: v.AuditHead().No - uint64(v.AuditWaits()), snapshot: c.Freeze(),
	}
}

// errVoid: the state had changes that may never be committed.
var errVoid = domain.Refuse(domain.Overloaded, "this node stopped leading the cluster meanwhile; try again")

// Backup returns the state at a moment after the call, once it is durable. It has everything that this node acknowledged before the call, and this node's archive has
// every record that had left memory by then: those that ended before Frozen.Last. While the archive lacks records the error is ErrArchiveLacks.
func (e *Engine) Backup(ctx context.Context) (*Frozen, error) {
	if e.config.Peers != nil { // what other nodes have acknowledged
		if err := e.awaitIndex(ctx); err != nil {
			return nil, err
		}
	}
	voided := e.voided.Load()
	f, err := e.freezeNow(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.durable.wait(ctx, f.Entry, e.stopError); err != nil {
		return nil, err
	}
	switch {
	case e.voided.Load() != voided:
		return nil, errVoid
	case !e.covers.complete(): // not before the state is frozen: it may have jumped
		return nil, ErrArchiveLacks
	}
	return f, nil
}

// Entries gives f the journal's entries from one number to another, both included, which must be durable. Those that were trimmed are journal.ErrTrimmed.
func Entries(ctx context.Context, e *Engine, from, to uint64, f func(journal.Entry) error) error {
	for entry, err := range e.source.Read(ctx, from) {
		if err == nil && entry.Number <= to {
			err = f(entry)
		}
		if err != nil || entry.Number >= to {
			return err
		}
	}
	return fmt.Errorf("the journal ends before entry %d", to)
}

// KeepJournal keeps the journal from an entry on for the next backup, when snapshots would let it be trimmed, while it grows by at most Config.JournalKept bytes from now on.
func KeepJournal(e *Engine, from uint64) {
	e.kept.keep(from, e.written.Load())
}

// keptJournal is the part of the journal that KeepJournal wants.
type keptJournal struct {
	sync.Mutex
	from  uint64 // 0: nothing is kept
	since int64  // Engine.written when it was asked for
}

func (k *keptJournal) keep(from uint64, written int64) {
	k.Lock()
	defer k.Unlock()
	if k.from != from { // the same one again comes from a backup that failed: the journal must not grow for as long as backups fail
		k.from, k.since = from, written
	}
}

// trimBefore is the number before which the journal can be trimmed, once a snapshot has what was before next. tooLong says that from now on nothing is kept.
func (k *keptJournal) trimBefore(next uint64, written, most int64) (before uint64, tooLong bool) {
	k.Lock()
	defer k.Unlock()
	if k.from == 0 || k.from >= next {
		return next, false
	}
	if written-k.since > most {
		k.from = 0
		return next, true
	}
	return k.from, false
}

// Replay applies a journal entry to a cell that no engine runs. What leaves memory with it goes to keep first, in the form in which an archive with that retention has it.
func Replay(c *cell.Cell, entry journal.Entry, retention time.Duration, keep func([]archive.Record) error) error {
	n, err := kernel.Forgets(entry.Batch)
	if err != nil {
		return err
	}
	v := c.View()
	for at := 0; at < n; {
		some := v.Ended(at, min(n-at, archiveLocked), math.MaxInt64)
		if len(some) == 0 {
			return fmt.Errorf("%d ended records leave memory, which has %d", n, at)
		}
		records := make([]archive.Record, 0, len(some))
		for _, x := range some {
			if x.Kind != kernel.Nothing {
				records = append(records, toRecord(x, retention))
			}
		}
		if err := keep(records); err != nil {
			return err
		}
		at += len(some)
	}
	return c.Replay(entry.Number, entry.Batch)
}

// freezeNow freezes the state between two groups: at once if none is being built, and otherwise when the present one is taken.
func (e *Engine) freezeNow(ctx context.Context) (*Frozen, error) {
	e.stateLock.Lock()
	if e.seq.Gathered() == 0 {
		f := freeze(e.seq.Cell(), e.seq.building.Number-1)
		e.stateLock.Unlock()
		return f, nil
	}
	asked := make(chan *Frozen, 1)
	e.freezes = append(e.freezes, asked)
	e.stateLock.Unlock()
	select {
	case f := <-asked:
		if f == nil {
			return nil, errVoid
		}
		return f, nil
	case <-e.stopped:
		return nil, e.stopError()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answerFreezes gives the state after g, which was just taken, to those that wait for it. The caller holds stateLock.
func (e *Engine) answerFreezes(g *Group) {
	if len(e.freezes) == 0 {
		return
	}
	f := freeze(e.seq.Cell(), g.Number)
	for _, asked := range e.freezes {
		asked <- f
	}
	e.freezes = nil
}

// refuseFreezes ends the wait for a group that will never be taken. The caller holds stateLock.
func (e *Engine) refuseFreezes() {
	for _, asked := range e.freezes {
		asked <- nil
	}
	e.freezes = nil
}
