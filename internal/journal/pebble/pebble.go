// Package pebble keeps a journal in a directory on one machine: entries in a Pebble database, where each append is one synced write to its
// log, and snapshots in separate files.
package pebble

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/journal"
)

// Options configures Open.
type Options struct {
	Dir     string
	Logger  *slog.Logger // nil: nothing is logged
	Program string       // identifies this process to another one that finds the directory in use, such as "muster serve"
	FS      vfs.FS       // nil: the operating system's; tests use a failing one

	TableFiles int // most table files kept open, each with a descriptor; 0: 256

	AcceptLostTail bool // continue without the newest entries if they are lost; their remains are kept next to the directory

	MemTable uint64 // bytes; 0: memTableBytes; tests that want flushes make it small
}

const (
	// memTableBytes is the size of the entries between two log rotations. Each rotation delays one append by some milliseconds: at 2 MB/s,
	// which is a busy cell, one append every eight seconds. It is not larger, because from the third log on, old logs are reused, and a sync
	// that overwrites blocks costs half of one that adds blocks.
	memTableBytes = 16 << 20
	// cacheBytes is small because entries are read once, in order, at the start.
	cacheBytes = 8 << 20
)

// tune is a function instead of a method, so that a package that uses Options does not compile the generic types in Pebble's options.
func tune(o *pebble.Options, options Options) {
	o.CacheSize = cacheBytes
	o.MemTableSize = cmp.Or(options.MemTable, memTableBytes)
	o.MemTableStopWritesThreshold = 4
	o.MaxOpenFiles = cmp.Or(options.TableFiles, 256)
	// Keys only grow, so tables never overlap and compactions move them without rewriting. Compression would account for most of the cost of
	// an append, to save bytes that the next trim removes.
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	o.TargetFileSizes[0] = int64(o.MemTableSize) // one file per flush
	for i := range o.Levels {
		o.Levels[i].BlockSize = 64 << 10 // entries are read in order
	}
}

// Journal is the embedded engine.
type Journal struct {
	db        *embeddb.DB
	snapshots *snapshots
	synced    *embeddb.SyncedFile

	writing sync.Mutex // held for a whole append or trim: with only one commit in flight, a torn tail can be distinguished from damage

	state struct {
		sync.Mutex
		closed bool
		failed error // first cause, once the journal is unusable
	}
	readers sync.WaitGroup // iterators that Close waits for; Add only while state is locked and the journal is open

	last  atomic.Uint64 // number of the last durable entry
	first atomic.Uint64 // number of the oldest entry that was not trimmed; last+1 if there is none

	installation atomic.Pointer[uuid.UUID] // nil: none
}

var _ journal.Journal = (*Journal)(nil)

// Exists reports whether there is a journal in dir.
func Exists(dir string) (bool, error) { return embeddb.Exists(nil, dir) }

// Open opens the journal in options.Dir and creates it if necessary. If another process has the directory open, the error is journal.ErrInUse
// and an *embeddb.InUse that names the process. If the journal is damaged, it is *journal.Damaged.
func Open(options Options) (*Journal, error) {
	j, err := open(options)
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", options.Dir, err)
	}
	return j, nil
}

// Create makes a new journal in options.Dir that begins with a snapshot after entry at; with at 0, it begins with entry 1, and write is not
// called. The journal is complete only if Create returns it: after an error or a crash, remove the directory.
func Create(options Options, installation uuid.UUID, at uint64, write func(io.Writer) error) (_ *Journal, err error) {
	j, err := Open(options)
	if err != nil {
		return nil, err
	}
	if j.last.Load() != 0 || j.snapshots.latestAt() != 0 {
		err = errors.New("the directory already has a journal")
	}
	if err == nil && installation != uuid.Nil {
		err = j.SetInstallation(installation)
	}
	if err == nil && at != 0 {
		if err = j.snapshots.save(at, installation, j.usable, write); err == nil {
			err = j.beginAfter(at)
		}
		j.first.Store(at + 1)
		j.last.Store(at)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create journal %s: %w", options.Dir, err), j.Close())
	}
	return j, nil
}

func open(options Options) (_ *Journal, err error) {
	files := options.FS
	if files == nil {
		files = vfs.Default
	}
	log := options.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	known, err := embeddb.ReadSynced(files, files.PathJoin(options.Dir, embeddb.SyncedName))
	if err != nil {
		log.Warn("the file that records how far the journal was synced cannot be used: a loss at the end of the journal would go undetected", "error", err)
	}
	db, err := embeddb.Open(embeddb.Config{
		Dir: options.Dir, FS: options.FS, Logger: options.Logger, Program: options.Program,
		Synced: known.At, CutTail: options.AcceptLostTail,
	}, func(o *pebble.Options) { tune(o, options) })
	if err != nil {
		if inUse, ok := errors.AsType[*embeddb.InUse](err); ok {
			return nil, fmt.Errorf("%w: %w", journal.ErrInUse, inUse)
		}
		return nil, lostEntries(files, options.Dir, damagedFile(err), known)
	}
	j := &Journal{db: db}
	defer func() {
		if err != nil {
			_ = db.Close()
		}
	}()
	if j.snapshots, err = openSnapshots(files, files.PathJoin(options.Dir, "snapshots")); err != nil {
		return nil, err
	}
	if err := j.load(known, options.AcceptLostTail); err != nil {
		return nil, err
	}
	if tail := db.Tail(); tail.Torn {
		log.Warn("an unfinished write at the end of the journal's newest log was cut off; it had not been acknowledged",
			"file", tail.File, "offset", tail.Readable, "bytes", tail.Rest, "entries", "at most 1", "last_entry", j.last.Load())
	}
	j.synced = embeddb.OpenSynced(files, files.PathJoin(options.Dir, embeddb.SyncedName), log)
	if last := j.last.Load(); last < known.Entry { // a power cut must not bring back the record of entries whose loss is accepted
		j.synced.Shorten(embeddb.Synced{Entry: last})
	}
	return j, nil
}

// load finds the numbers of the first and the last entry and checks them against the snapshots and the file `synced`.
func (j *Journal) load(known embeddb.Synced, acceptLostTail bool) error {
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
	at := j.snapshots.latestAt()
	switch {
	case at > last && acceptLostTail:
		if first, err = at+1, j.beginAfter(at); err != nil {
			return err
		}
		last = at
	case at > last:
		return &journal.Damaged{Entry: last + 1, Tail: true, Err: fmt.Errorf("missing: the latest snapshot was taken after entry %d", at)}
	case last < known.Entry && !acceptLostTail:
		return &journal.Damaged{Entry: last + 1, Tail: true,
			Err: fmt.Errorf("missing, and with it all entries up to %d: %d entries were on the disk and are lost", known.Entry, known.Entry-last)}
	case at+1 < first:
		return &journal.Damaged{File: j.snapshots.dir, Err: fmt.Errorf("the snapshot after entry %d or a later one is missing: the oldest entry is %d", first-1, first)}
	}
	if err := j.loadInstallation(); err != nil {
		return err
	}
	j.first.Store(first)
	j.last.Store(last)
	return nil
}

// beginAfter drops all entries, so that the next one is the first after the latest snapshot.
func (j *Journal) beginAfter(at uint64) error {
	write := j.db.NewBatch()
	if err := write.DeleteRange(entryKey(0), entryKey(at+1), nil); err != nil {
		return err
	}
	if err := write.Set(trimmedKey, binary.LittleEndian.AppendUint64(nil, at+1), nil); err != nil {
		return err
	}
	return j.commit(write)
}

// loadInstallation reads the installation that owns the journal, and checks that the snapshot has the same owner.
func (j *Journal) loadInstallation() error {
	value, err := j.get(ownerKey, len(uuid.UUID{}))
	if err != nil || value == nil {
		return err
	}
	id := uuid.UUID(value)
	j.installation.Store(&id)
	at, latest, err := j.snapshots.open()
	if err != nil || latest == nil {
		return err
	}
	defer latest.Close()
	if of := latest.Installation(); of != uuid.Nil && of != id {
		return &journal.Damaged{File: j.snapshots.path(at), Err: fmt.Errorf("it belongs to the installation %s, the journal to %s", of, id)}
	}
	return nil
}

// Installation returns the id of the installation that owns the journal; zero if it was never set.
func (j *Journal) Installation() uuid.UUID {
	if id := j.installation.Load(); id != nil {
		return *id
	}
	return uuid.Nil
}

// SetInstallation durably records the installation that owns the journal. Snapshots saved from now on contain it, too.
func (j *Journal) SetInstallation(id uuid.UUID) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if err := j.usable(); err != nil {
		return fmt.Errorf("set the installation of the journal: %w", err)
	}
	write := j.db.NewBatch()
	if err := write.Set(ownerKey, id[:], nil); err != nil {
		return err
	}
	if err := j.commit(write); err != nil {
		return fmt.Errorf("set the installation of the journal: %w", err)
	}
	j.installation.Store(&id)
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

// Shortage returns the shortage of descriptors or space for whose end the journal waits, or nil.
func (j *Journal) Shortage() error { return j.db.Shortage() }

// StopWaiting fails the operations that wait for a shortage to end. Call it before a Close for which other goroutines wait.
func (j *Journal) StopWaiting() { j.db.StopWaiting() }

// FreeSpace returns how many bytes may still be written to the journal's disk; ok is false if the system does not report it.
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
	j.synced.Close()
	if err := j.db.Close(); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

// damagedFile converts a damage error of the database to the journal's own type.
func damagedFile(err error) error {
	if damaged, ok := errors.AsType[*embeddb.Damaged](err); ok {
		return &journal.Damaged{File: damaged.Place(), Tail: damaged.Tail, Err: damaged.Err}
	}
	return err
}
