// Package pebble keeps an archive in a directory on one machine, in a Pebble database without a log: a Put ends with a flush, which writes everything
// once, whereas a log and a later flush would write it twice.
package pebble

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/embeddb"
)

// Options configures Open.
type Options struct {
	Dir     string
	Logger  *slog.Logger // nil: nothing is logged
	Program string       // identifies this process to another one that finds the directory in use, such as "muster serve"
	FS      vfs.FS       // nil: the operating system's; tests use a failing one

	TableFiles int // most table files kept open, each with a descriptor; 0: 500

	MemTable uint64 // bytes; 0: memTableBytes; tests that want every path make it small
}

const (
	cacheBytes = 16 << 20
	// memTableBytes is small on purpose: a batch of at least half this size is not inserted key by key, but sorted and flushed as a whole.
	memTableBytes = 4 << 20
	// batchBytes bounds the memory of a Put of any size, besides its records.
	batchBytes = 8 << 20
	// Small batches would be inserted key by key in any case, so they are written in small steps with rests between them.
	manyRecords     = 4096
	smallBatchBytes = 64 << 10
	putRests        = 150 * time.Millisecond
)

// tune is a function instead of a method, so that a package that uses Options does not compile the generic types in Pebble's options.
func tune(o *pebble.Options, options Options) {
	o.DisableWAL = true
	o.CacheSize = cacheBytes
	o.MemTableSize = cmp.Or(options.MemTable, memTableBytes)
	o.MaxOpenFiles = cmp.Or(options.TableFiles, 500)
	o.TargetFileSizes[0] = 2 << 20 // removing a large file delays the syncs of the journal
	// Each Put leaves a file in level 0 that overlaps all others. Half as many files as the threshold are merged at once, together with all of the level below. The
	// more files and the smaller that level, the lower the cost per record. Filters keep most look-ups from reading the others.
	o.L0CompactionThreshold = 32
	o.LBaseMaxBytes = 16 << 20
	for i := range o.Levels {
		o.Levels[i].BlockSize = 16 << 10
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10) // most ids looked up are new
	}
}

// Archive is the embedded engine.
type Archive struct {
	db *embeddb.DB

	writing   sync.Mutex // held for a whole Put or Expire: one batch is built at a time
	nextBlock uint64
	buffer    builder
	lastBatch int // bytes of the last batch of a Put with many records

	mark struct {
		sync.Mutex
		next *archive.Mark // mark for the next Put to store; nil: none
	}
	installation uuid.UUID // guarded by writing
	damage       damageLog
}

var _ archive.Archive = (*Archive)(nil)

// Exists reports whether there is an archive in dir.
func Exists(dir string) (bool, error) { return embeddb.Exists(nil, dir) }

// Open opens the archive in options.Dir and creates it if necessary. If another process has the directory open, the error is archive.ErrInUse and an
// *embeddb.InUse that names the process. If the archive is damaged, it is *archive.Damaged.
func Open(options Options) (*Archive, error) {
	a := &Archive{damage: damageLog{log: options.Logger}}
	db, err := embeddb.Open(embeddb.Config{
		Dir: options.Dir, FS: options.FS, Logger: options.Logger, Program: options.Program, OnDamage: a.damage.found,
	}, func(o *pebble.Options) { tune(o, options) })
	if err == nil {
		a.db = db
		if err = a.load(); err == nil {
			return a, nil
		}
		_ = db.Close()
	}
	if inUse, ok := errors.AsType[*embeddb.InUse](err); ok {
		err = fmt.Errorf("%w: %w", archive.ErrInUse, inUse)
	}
	return nil, fmt.Errorf("open archive %s: %w", options.Dir, damaged(err))
}

// load checks the format and finds the next block's number.
func (a *Archive) load() error {
	value, closer, err := a.db.Get(formatKey)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		if err := a.db.Set(formatKey, binary.LittleEndian.AppendUint32(nil, format), pebble.NoSync); err != nil {
			return err
		}
		if err := a.db.FlushAll(); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		stored := append([]byte(nil), value...)
		_ = closer.Close()
		if len(stored) != 4 || binary.LittleEndian.Uint32(stored) != format {
			return fmt.Errorf("it has format %x, but this release reads format %d", stored, format)
		}
	}
	if a.installation, err = a.readInstallation(); err != nil {
		return err
	}
	blocks, err := a.db.NewIter(&pebble.IterOptions{LowerBound: []byte{blockPrefix}, UpperBound: []byte{blockPrefix + 1}})
	if err != nil {
		return err
	}
	defer blocks.Close()
	if !blocks.Last() {
		return blocks.Error()
	}
	last, err := decodeBlockKey(blocks.Key())
	if err != nil {
		return &archive.Damaged{Place: "blocks", Err: err}
	}
	a.nextBlock = last + 1
	return nil
}

// use keeps the archive open until done is called.
func (a *Archive) use(ctx context.Context) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	done, err = a.db.Use()
	switch {
	case errors.Is(err, embeddb.ErrClosed):
		return nil, archive.ErrClosed
	case err != nil:
		return nil, failed(err)
	}
	return done, nil
}

// explain returns the error for a method that encountered err.
func (a *Archive) explain(err error) error {
	if errors.Is(err, archive.ErrFailed) || errors.Is(err, archive.ErrClosed) {
		return err
	}
	if cause := a.db.Explain(err); cause != err {
		return failed(cause)
	}
	return damaged(err)
}

func failed(cause error) error { return fmt.Errorf("%w: %w", archive.ErrFailed, damaged(cause)) }

// damaged converts a damage error of the database to the archive's own type.
func damaged(err error) error {
	if d, ok := errors.AsType[*embeddb.Damaged](err); ok {
		return &archive.Damaged{Place: d.Place(), Err: d.Err}
	}
	if err != nil && pebble.IsCorruptionError(err) {
		return &archive.Damaged{Place: "database", Err: err}
	}
	return err
}

// Shortage returns the shortage of descriptors or space for whose end the archive waits, or nil.
func (a *Archive) Shortage() error { return a.db.Shortage() }

// StopWaiting fails the operations that wait for a shortage to end. Call it before a Close for which other goroutines wait.
func (a *Archive) StopWaiting() { a.db.StopWaiting() }

// FreeSpace returns how many bytes may still be written to the archive's disk; ok is false if the system does not report it.
func (a *Archive) FreeSpace() (bytes uint64, ok bool) { return a.db.FreeSpace() }

// Close implements archive.Archive.
func (a *Archive) Close() error {
	if err := a.db.Close(); err != nil {
		return fmt.Errorf("close archive: %w", err)
	}
	return nil
}
