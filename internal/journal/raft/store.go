package raft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"
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
		s.synced.Note(embeddb.Synced{Entry: last, At: s.db.LogPosition()})
		s.synced.Sync()
	}
}

// IsMonotonic declares that the log has no gaps, so that Raft removes all entries after it has installed a snapshot.
func (s *store) IsMonotonic() bool { return true }

// FirstIndex implements raft.LogStore.
func (s *store) FirstIndex() (uint64, error) { return s.first.Load(), nil }

// LastIndex implements raft.LogStore.
func (s *store) LastIndex() (uint64, error) { return s.last.Load(), nil }

// GetLog implements raft.LogStore. At the log's origin, a follower that compares its log with the leader's request gets the term.
func (s *store) GetLog(index uint64, l *raft.Log) error {
	if kept, ok := s.recent.get(index); ok {
		*l = kept
		return nil
	}
	err := s.read(index, func(stored *raft.Log) error {
		*l = *stored
		l.Data = append(make([]byte, 0, len(stored.Data)), stored.Data...)
		l.Extensions = append([]byte(nil), stored.Extensions...)
		return nil
	})
	if errors.Is(err, raft.ErrLogNotFound) {
		if o := s.origin.Load(); o.index == index && s.first.Load() == index+1 && compares() {
			*l = raft.Log{Index: index, Term: o.term}
			return nil
		}
		return err
	}
	if err != nil {
		return s.end(err)
	}
	return nil
}

// read calls use with the entry. Its slices are valid only until use returns.
func (s *store) read(index uint64, use func(*raft.Log) error) error {
	done, err := s.db.Use()
	if err != nil {
		return err
	}
	defer done()
	if kept, ok := s.recent.get(index); ok {
		return use(&kept)
	}
	value, closer, err := s.db.Get(logKey(index))
	if errors.Is(err, pebble.ErrNotFound) {
		return raft.ErrLogNotFound
	}
	if err != nil {
		return s.explain(err)
	}
	defer closer.Close()
	var l raft.Log
	if err := parseLog(index, value, &l); err != nil {
		return s.explain(&journal.Damaged{File: fmt.Sprintf("index %d of Raft's log", index), Err: err})
	}
	return use(&l)
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

// StoreLog implements raft.LogStore.
func (s *store) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore. The same commit removes the entries from the first new index on, so the log never contains entries of
// two histories, whatever Raft has removed before.
func (s *store) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	from, to := logs[0].Index, logs[len(logs)-1].Index
	if to-from != uint64(len(logs))-1 {
		return s.failed(fmt.Errorf("store %d entries from index %d to %d: not one after the other", len(logs), from, to))
	}
	first, last := s.first.Load(), s.last.Load()
	size := 0
	for _, l := range logs {
		size += logSize(l) + 32
	}
	write := s.db.NewBatchWithSize(size + 64)
	switch {
	case last != 0 && from > last+1: // after a gap, which only an installed snapshot explains
		if err := write.DeleteRange(logKey(0), logKey(from), nil); err != nil {
			return err
		}
		first = from
	case last != 0 && from <= last:
		s.noteShorter(from - 1)
		s.recent.remove(from, last)
		if err := write.DeleteRange(logKey(from), logKey(last+1), nil); err != nil {
			return err
		}
		first = min(first, from)
	case last == 0:
		first = from
	}
	for _, l := range logs {
		set := write.SetDeferred(logKeySize, logSize(l))
		copy(set.Key, logKey(l.Index))
		putLog(set.Value, l)
		if err := set.Finish(); err != nil {
			return err
		}
	}
	if err := s.commitBatch(write); err != nil {
		return s.failed(err)
	}
	s.recent.add(logs)
	s.first.Store(first)
	s.last.Store(to)
	s.note()
	return nil
}

// DeleteRange implements raft.LogStore. Raft removes the end of the log if a deposed leader wrote it, or the whole log.
func (s *store) DeleteRange(from, to uint64) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.keepNext {
		s.keepNext = false
		return nil
	}
	return s.deleteRange(from, to, nil)
}

// deleteRange must be called with writing held. besides adds to its commit.
func (s *store) deleteRange(from, to uint64, besides func(embeddb.Batch) error) error {
	first, last := s.first.Load(), s.last.Load()
	if from > first && to < last {
		return fmt.Errorf("delete indexes %d to %d of Raft's log, which has %d to %d: it would have a gap", from, to, first, last)
	}
	if to >= last && from > first {
		s.noteShorter(from - 1)
	} else if to >= last {
		s.noteShorter(0)
	}
	s.recent.remove(from, to)
	err := s.commit(func(b embeddb.Batch) error {
		if besides != nil {
			if err := besides(b); err != nil {
				return err
			}
		}
		return b.DeleteRange(logKey(from), logKey(to+1), nil)
	})
	if err != nil {
		return s.failed(err)
	}
	switch {
	case from <= first && to >= last:
		first, last = 0, 0
	case from <= first:
		first = max(first, to+1)
	default:
		last = from - 1
	}
	s.first.Store(first)
	s.last.Store(last)
	s.note()
	return nil
}

// failed fails the node. Raft survives this error: a leader that cannot write steps down.
func (s *store) failed(err error) error {
	s.fail(err)
	return err
}

// trim removes the log up to index to, if any, and records which entries readers can still read.
func (s *store) trim(to uint64, t trimmed) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	record := func(b embeddb.Batch) error { return b.Set(trimmedKey, t.encode(), nil) }
	first := s.first.Load()
	if first == 0 || to < first {
		if err := s.commit(record); err != nil {
			return s.failed(err)
		}
		s.note()
		return nil
	}
	return s.deleteRange(first, to, record)
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

func (s *store) trimmed() (trimmed, error) {
	value, err := s.get(trimmedKey, 16)
	if err != nil || value == nil {
		return trimmed{first: 1}, err
	}
	return parseTrimmed(value)
}

func (s *store) readOrigin() error {
	value, err := s.get(originKey, 16)
	if err != nil {
		return err
	}
	s.origin.Store(parseOrigin(value))
	return nil
}

func (s *store) installation() (id uuid.UUID, err error) {
	value, err := s.get(ownerKey, len(id))
	if err == nil && value != nil {
		id = uuid.UUID(value)
	}
	return id, err
}

func (s *store) setInstallation(id uuid.UUID) error {
	return s.put(ownerKey, id[:])
}

func (s *store) put(key, value []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.commit(func(b embeddb.Batch) error { return b.Set(key, value, nil) }); err != nil {
		return s.failed(err)
	}
	s.note()
	return nil
}

// get returns a copy of the value, or nil if there is none. size is its expected size; 0 for any.
func (s *store) get(key []byte, size int) ([]byte, error) {
	done, err := s.db.Use()
	if err != nil {
		return nil, err
	}
	defer done()
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, s.explain(err)
	}
	defer closer.Close()
	if size != 0 && len(value) != size {
		return nil, &journal.Damaged{File: "key " + string(key), Err: fmt.Errorf("%d bytes, %d expected", len(value), size)}
	}
	return append([]byte{}, value...), nil
}

// Each value of the stable store is preceded by a checksum over key and value.

// Set implements raft.StableStore.
func (s *store) Set(key, value []byte) error {
	stored := binary.LittleEndian.AppendUint32(nil, stableSum(key, value))
	return s.put(stableKey(key), append(stored, value...))
}

// Get implements raft.StableStore.
func (s *store) Get(key []byte) ([]byte, error) {
	stored, err := s.get(stableKey(key), 0)
	if err != nil || stored == nil {
		return nil, err
	}
	if len(stored) < checksumSize || binary.LittleEndian.Uint32(stored) != stableSum(key, stored[checksumSize:]) {
		return nil, &journal.Damaged{File: "key " + string(key), Err: errChecksum}
	}
	return stored[checksumSize:], nil
}

func stableSum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// SetUint64 implements raft.StableStore. Raft panics if it cannot write its term, so on failure SetUint64 ends the goroutine.
func (s *store) SetUint64(key []byte, value uint64) error {
	if err := s.Set(key, binary.LittleEndian.AppendUint64(nil, value)); err != nil {
		return s.end(err)
	}
	return nil
}

// GetUint64 implements raft.StableStore.
func (s *store) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	if err != nil || value == nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, &journal.Damaged{File: "key " + string(key), Err: fmt.Errorf("%d bytes, 8 expected", len(value))}
	}
	return binary.LittleEndian.Uint64(value), nil
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
