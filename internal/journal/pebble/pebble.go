// Package pebble keeps a journal in a directory of one machine: entries in a Pebble database, where each append is
// one synced write of its log, and snapshots in files beside it.
package pebble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/journal"
)

// Options say which directory to open and for whom.
type Options struct {
	Dir     string
	Logger  *slog.Logger // nil: nothing is logged
	Program string       // how a second process is told who has the directory, such as "muster serve"
	FS      vfs.FS       // nil: the operating system's; tests put a failing one here

	TableFiles int // that are kept open at most, each a descriptor; 0: 256

	MemTable uint64 // bytes; 0: memTableBytes; tests that want flushes make it small
}

const (
	// memTableBytes is how much is appended between two changes of the log, each of which makes one append wait some
	// milliseconds: at 2 MB/s, which is a busy cell, one in eight seconds. Not more, since from the third log on old ones
	// are written over, and a sync that finds its blocks on the disk already costs half of one that has to add them.
	memTableBytes = 16 << 20
	// cacheBytes is small because entries are read once, in order, at start.
	cacheBytes = 8 << 20
)

func (options Options) tune(o *pebble.Options) {
	o.CacheSize = cacheBytes
	o.MemTableSize = cmp.Or(options.MemTable, memTableBytes)
	o.MemTableStopWritesThreshold = 4
	o.MaxOpenFiles = cmp.Or(options.TableFiles, 256)
	// Keys only grow, so tables never overlap and compactions move them without rewriting; compression would be the
	// larger part of what an append costs, for bytes that the next trim drops.
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	o.TargetFileSizes[0] = int64(o.MemTableSize) // one file a flush
	o.CompactionConcurrencyRange = func() (lower, upper int) { return 1, 1 }
}

// Journal is the embedded engine.
type Journal struct {
	db        *embeddb.DB
	snapshots *snapshots

	writing sync.Mutex // held for a whole append or trim: one commit in flight is what lets a torn tail be told from damage

	state struct {
		sync.Mutex
		closed bool
		failed error // first cause, once the journal is unusable
	}
	readers sync.WaitGroup // iterators that Close must wait for; Add only with state locked and not closed

	last  atomic.Uint64 // number of the last durable entry
	first atomic.Uint64 // number of the oldest entry that was not trimmed; last+1 when there is none
}

var _ journal.Journal = (*Journal)(nil)

// Open opens the journal in options.Dir and makes it when there is none. A directory that another process has open gives
// journal.ErrInUse and an *embeddb.InUse that says who; one that cannot be trusted gives *journal.Damaged.
func Open(options Options) (*Journal, error) {
	j, err := open(options)
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", options.Dir, err)
	}
	return j, nil
}

func open(options Options) (_ *Journal, err error) {
	db, err := embeddb.Open(embeddb.Config{
		Dir: options.Dir, FS: options.FS, Logger: options.Logger, Program: options.Program,
	}, options.tune)
	if err != nil {
		if inUse, ok := errors.AsType[*embeddb.InUse](err); ok {
			return nil, fmt.Errorf("%w: %w", journal.ErrInUse, inUse)
		}
		return nil, damagedFile(err)
	}
	j := &Journal{db: db}
	defer func() {
		if err != nil {
			_ = db.Close()
		}
	}()
	files := options.FS
	if files == nil {
		files = vfs.Default
	}
	if j.snapshots, err = openSnapshots(files, files.PathJoin(options.Dir, "snapshots")); err != nil {
		return nil, err
	}
	if err := j.load(); err != nil {
		return nil, err
	}
	return j, nil
}

// load finds the numbers of the first and the last entry and checks that they fit what else is known.
func (j *Journal) load() error {
	if err := j.checkFormat(); err != nil {
		return err
	}
	first, err := j.trimmedBefore()
	if err != nil {
		return err
	}
	oldest, newest, err := j.ends()
	if err != nil {
		return err
	}
	last := first - 1
	if newest != 0 {
		if oldest != first {
			return &journal.Damaged{Entry: first, Err: fmt.Errorf("missing: the oldest entry is %d", oldest)}
		}
		last = newest
	}
	if at := j.snapshots.latestAt(); at > last {
		return &journal.Damaged{Entry: last + 1, Err: fmt.Errorf("missing: the latest snapshot was taken after entry %d", at)}
	}
	j.first.Store(first)
	j.last.Store(last)
	return nil
}

// usable returns why the journal cannot be used, or nil.
func (j *Journal) usable() error {
	j.state.Lock()
	defer j.state.Unlock()
	return j.usableLocked()
}

func (j *Journal) usableLocked() error {
	if j.state.closed {
		return journal.ErrClosed
	}
	if j.state.failed == nil {
		j.state.failed = damagedFile(j.db.Err())
	}
	if j.state.failed != nil {
		return fmt.Errorf("%w: %w", journal.ErrFailed, j.state.failed)
	}
	return nil
}

// fail makes the journal unusable and returns the error to answer with.
func (j *Journal) fail(cause error) error {
	j.state.Lock()
	defer j.state.Unlock()
	if j.state.failed == nil {
		j.state.failed = damagedFile(cause)
	}
	return fmt.Errorf("%w: %w", journal.ErrFailed, j.state.failed)
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

// Shortage is what the journal waits for, descriptors or space, and nil while it waits for nothing.
func (j *Journal) Shortage() error { return j.db.Shortage() }

// StopWaiting ends the waits for a shortage to end, with errors; before a Close for which others wait.
func (j *Journal) StopWaiting() { j.db.StopWaiting() }

// FreeSpace is how many bytes may still be written to the journal's disk; not ok where the system does not tell.
func (j *Journal) FreeSpace() (bytes uint64, ok bool) { return j.db.FreeSpace() }

// Close implements journal.Journal.
func (j *Journal) Close() error {
	j.state.Lock()
	if j.state.closed {
		j.state.Unlock()
		return nil
	}
	j.state.closed = true
	j.state.Unlock()
	j.StopWaiting()

	j.readers.Wait()
	j.snapshots.saving.Lock()
	defer j.snapshots.saving.Unlock()
	j.writing.Lock()
	defer j.writing.Unlock()
	if err := j.db.Close(); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

// damagedFile gives damage that the database found the journal's own type.
func damagedFile(err error) error {
	if damaged, ok := errors.AsType[*embeddb.Damaged](err); ok {
		return &journal.Damaged{File: damaged.Place(), Err: damaged.Err}
	}
	return err
}
