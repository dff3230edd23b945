package raft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/journal"
)

const (
	memTableBytes = 16 << 20 // as in journal/pebble
	cacheBytes    = 8 << 20  // the log is read at its end, from the memtable, and once from its beginning, at the start
)

// store has Raft's log and the rest of its durable state: its term and its vote. One commit is in flight at a time, so that a torn tail can
// be distinguished from damage, and each is synced before it returns.
//
// Raft's library panics if it cannot write its term or read a committed entry. The store never returns these errors to it: it fails the
// node and ends the goroutine, with its deferred calls. The failed node then shuts Raft down.
type store struct {
	db     *embeddb.DB
	synced *embeddb.SyncedFile
	fail   func(error) // fails the node; set before Raft starts

	writing     sync.Mutex // held for a whole commit
	first, last atomic.Uint64
	keepNext    bool // Raft's next DeleteRange deletes nothing; guarded by writing
	origin      atomic.Pointer[origin]
	recent      recent
}

var (
	_ raft.LogStore          = (*store)(nil)
	_ raft.MonotonicLogStore = (*store)(nil)
	_ raft.StableStore       = (*store)(nil)
)

func tune(o *pebble.Options) {
	o.CacheSize = cacheBytes
	o.MemTableSize = memTableBytes
	o.MemTableStopWritesThreshold = 4
	o.MaxOpenFiles = 256
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	o.TargetFileSizes[0] = int64(o.MemTableSize)
}

// openStore opens the database in dir. The file `synced` beside it records the last index and the position of the log.
func openStore(files vfs.FS, dir, program string, log *slog.Logger) (_ *store, err error) {
	if files == nil {
		files = vfs.Default
	}
	syncedPath := files.PathJoin(dir, embeddb.SyncedName)
	known, err := embeddb.ReadSynced(files, syncedPath)
	if err != nil {
		log.Warn("the file that records how far Raft's log was synced cannot be used: a loss at its end would go undetected", "error", err)
	}
	config := embeddb.Config{Dir: dir, Logger: log, Program: program, Synced: known.At}
	if files != vfs.Default {
		config.FS = files
	}
	db, err := embeddb.Open(config, tune)
	if err != nil {
		if inUse, ok := errors.AsType[*embeddb.InUse](err); ok {
			return nil, fmt.Errorf("%w: %w", journal.ErrInUse, inUse)
		}
		return nil, damaged(err)
	}
	s := &store{db: db, fail: func(error) {}}
	defer func() {
		if err != nil {
			_ = db.Close()
		}
	}()
	if err := s.checkFormat(); err != nil {
		return nil, err
	}
	first, last, err := s.ends()
	if err != nil {
		return nil, err
	}
	if last < known.Entry {
		return nil, &journal.Damaged{Tail: true, File: dir, Err: fmt.Errorf("entries of Raft's log after index %d are missing: they were on the disk up to %d", last, known.Entry)}
	}
	s.first.Store(first)
	s.last.Store(last)
	if err := s.readOrigin(); err != nil {
		return nil, err
	}
	s.synced = embeddb.OpenSynced(files, syncedPath, log)
	return s, nil
}

func (s *store) checkFormat() error {
	value, err := s.get(formatKey, 4)
	if err != nil {
		return err
	}
	if value == nil {
		return s.commit(func(b embeddb.Batch) error {
			return b.Set(formatKey, binary.LittleEndian.AppendUint32(nil, format), nil)
		})
	}
	if stored := binary.LittleEndian.Uint32(value); stored != format {
		return fmt.Errorf("it has format %d, but this release reads format %d", stored, format)
	}
	return nil
}

// ends returns the first and the last index in the database; 0 and 0 if it is empty.
func (s *store) ends() (first, last uint64, err error) {
	entries, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{logPrefix}, UpperBound: []byte{logPrefix + 1}})
	if err != nil {
		return 0, 0, err
	}
	defer entries.Close()
	if !entries.First() {
		return 0, 0, damaged(entries.Error())
	}
	if len(entries.Key()) == logKeySize {
		first = binary.BigEndian.Uint64(entries.Key()[1:])
	}
	if entries.Last() && len(entries.Key()) == logKeySize {
		last = binary.BigEndian.Uint64(entries.Key()[1:])
	}
	if first == 0 || last == 0 {
		return 0, 0, &journal.Damaged{File: "database", Err: errors.New("not the key of a log entry")}
	}
	return first, last, nil
}

// commit makes a batch durable, and records its position. Only DB.Err decides, because to Pebble a failed write seems to succeed.
func (s *store) commit(fill func(embeddb.Batch) error) error {
	write := s.db.NewBatch()
	if err := fill(write); err != nil {
		return err
	}
	return s.commitBatch(write)
}

func (s *store) commitBatch(write embeddb.Batch) error {
	err := write.Commit(pebble.Sync)
	if failure := s.db.Err(); failure != nil {
		err = failure
	}
	if err != nil {
		return damaged(err)
	}
	return write.Close()
}

// note records how far the log is synced. It must be called with writing held.
func (s *store) note() {
	if s.synced != nil {
		s.synced.Note(embeddb.Synced{Entry: s.last.Load(), At: s.db.LogPosition()})
	}
}

// noteShorter durably records that the log will be shorter, before its end is cut: the file must never be ahead of the log.
func (s *store) noteShorter(last uint64) {
	if s.synced != nil && last < s.last.Load() {
		s.synced.Shorten(embeddb.Synced{Entry: last, At: s.db.LogPosition()})
	}
}

// explain returns why a read failed: after a failed write, Pebble misses data that it believes to have written.
func (s *store) explain(err error) error { return damaged(s.db.Explain(err)) }

// end fails the node, and ends the goroutine if Raft would panic on err. Raft's replication must return from the error instead, because it
// has goroutines to stop.
func (s *store) end(err error) error {
	s.fail(err)
	if panics() {
		runtime.Goexit()
	}
	return err
}

// panics reports whether Raft called the store from a function that panics on an error. During its start, a panic is an error of Open.
func panics() (found bool) {
	for name := range raftCalls() {
		switch name {
		case "NewRaft", "BootstrapCluster":
			return false
		case "(*Raft).processLogs", "(*Raft).setCurrentTerm":
			found = true
		}
	}
	return found
}

// compares reports whether Raft called the store to compare the log with a leader's request. Entries that it reads elsewhere it applies or sends.
func compares() bool {
	for name := range raftCalls() {
		return name == "(*Raft).appendEntries"
	}
	return false
}

// raftCalls yields the functions of Raft's library on this goroutine's stack, innermost first.
func raftCalls() iter.Seq[string] {
	return func(yield func(string) bool) {
		var callers [32]uintptr
		frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
		for more := true; more; {
			var frame runtime.Frame
			frame, more = frames.Next()
			if name, ok := strings.CutPrefix(frame.Function, "github.com/hashicorp/raft."); ok && !yield(name) {
				return
			}
		}
	}
}

// failed fails the node. Raft survives this error: a leader that cannot write steps down.
func (s *store) failed(err error) error {
	s.fail(err)
	return err
}

// begin durably records that a snapshot that ends at an origin replaces the log, and which entries readers can still read.
func (s *store) begin(at origin, t trimmed) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	err := s.commit(func(b embeddb.Batch) error {
		if err := b.Set(originKey, at.encode(), nil); err != nil {
			return err
		}
		return b.Set(trimmedKey, t.encode(), nil)
	})
	if err != nil {
		return s.failed(err)
	}
	s.origin.Store(&at)
	s.note()
	return nil
}

// clear removes the whole log.
func (s *store) clear() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if first, last := s.first.Load(), s.last.Load(); last != 0 {
		return s.deleteRange(first, last, nil)
	}
	return nil
}

func (s *store) close() error {
	s.db.StopWaiting()
	s.writing.Lock()
	defer s.writing.Unlock()
	s.synced.Close()
	return s.db.Close()
}

// damaged converts damage that the database found to the journal's own type.
func damaged(err error) error {
	if found, ok := errors.AsType[*embeddb.Damaged](err); ok {
		return &journal.Damaged{File: found.Place(), Tail: found.Tail, Err: found.Err}
	}
	if err != nil && pebble.IsCorruptionError(err) {
		return &journal.Damaged{File: "database", Err: err}
	}
	return err
}
