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

// Frozen is the state after one journal entry. It can be written while the engine continues.
type Frozen struct {
	Entry     uint64
	Level     uint
	Last      domain.Time // of the last transaction
	Forgotten uint64      // number of records that had left memory for the archive
	Next      domain.Time // records still in memory ended then or later
	Audited   uint64      // number of the last audit log entry that had left memory
	Noted     uint64      // entry of the last backup that the state has recorded; math.MaxUint64 if it records none yet

	snapshot *kernel.Snapshot
}

// Write writes the state as a snapshot.
func (f *Frozen) Write(w io.Writer) error { return f.snapshot.Write(w) }

func freeze(c *cell.Cell, at uint64) *Frozen {
	v := c.View()
	f := &Frozen{
		Entry: at, Level: c.Level(), Last: c.Last(), Forgotten: c.Forgotten(), Next: nextEnd(c), Audited: v.AuditHead().No - uint64(v.AuditWaits()), Noted: math.MaxUint64, snapshot: c.Freeze(),
	}
	if _, known := v.BackupsKnown(); known {
		last, _ := v.LastBackup()
		f.Noted = last.Entry
	}
	return f
}

// errVoid is returned when the frozen state has changes that may never be committed.
var errVoid = domain.Refuse(domain.Overloaded, "this node stopped leading the cluster meanwhile; try again")

// Backup returns a durable state from a moment after the call. It contains everything that this node acknowledged before the call, and this node's
// archive contains every record that had left memory by then: those that ended before Frozen.Last. While the archive is incomplete, it returns
// ErrArchiveLacks.
func (e *Engine) Backup(ctx context.Context) (*Frozen, error) {
	if e.config.Peers != nil { // include what other nodes have acknowledged
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
	case !e.covers.complete(): // checked only now: the state may have jumped to another node's snapshot before it was frozen
		return nil, ErrArchiveLacks
	}
	return f, nil
}

// Entries calls f for the durable journal entries from `from` to `to`, both included. For trimmed entries it returns journal.ErrTrimmed.
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

// KeepJournal keeps the journal from entry `from` on for the next backup, although snapshots would allow trimming it. It does so until the journal
// has grown by Config.JournalKept bytes from now.
func KeepJournal(e *Engine, from uint64) {
	e.kept.keep(from, e.written.Load())
}

// keptJournal is the part of the journal that KeepJournal protects.
type keptJournal struct {
	sync.Mutex
	from  uint64 // 0: nothing is kept
	since int64  // Engine.written at the call of KeepJournal
}

func (k *keptJournal) keep(from uint64, written int64) {
	k.Lock()
	defer k.Unlock()
	if k.from != from { // a failed backup asks for the same entry again; the limit must still apply
		k.from, k.since = from, written
	}
}

// trimBefore returns the entry before which the journal can be trimmed, given that a snapshot covers everything before next. tooLong reports that the
// limit was exceeded and the journal is no longer kept for a backup.
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

// Replay applies a journal entry to a cell without an engine. Before records leave memory, it passes them to keep in the form in which an archive
// with that retention stores them.
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

// freezeNow freezes the state between two groups: at once if the current group is empty, otherwise when it is taken.
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

// answerFreezes passes the state after g, which was just taken, to the waiting backups. The caller holds stateLock.
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

// refuseFreezes ends the wait of backups for a group that will never be taken. The caller holds stateLock.
func (e *Engine) refuseFreezes() {
	for _, asked := range e.freezes {
		asked <- nil
	}
	e.freezes = nil
}
