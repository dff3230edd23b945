package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"sync"

	"github.com/musterhq/muster/internal/journal"
)

// Memory is the disk of a simulated cell: what journals opened on it append stays when they are closed, and what was
// synced survives a crash. Everything happens within the call, nothing depends on time, and all randomness comes from
// the seed, so the same calls have the same outcomes.
type Memory struct {
	mu      sync.Mutex
	chance  *rand.Rand
	faults  Faults
	next    struct{ appends, saves []Fault } // set in advance; they take precedence over chance
	entries [][]byte
	first   uint64 // number of entries[0]
	pending []byte // an append that failed between its write and its sync; nil: none
	saved   savedSnapshot
	writer  *memoryJournal // the journal that is not fenced
}

// Fault is an outcome of a call that changes the disk.
type Fault uint8

const (
	None       Fault = iota
	NotWritten       // the call failed and nothing was written
	Written          // the call failed, yet what it wrote is durable
	Unsynced         // the call failed between write and sync: opening again finds the data, a crash may lose it (appends only)
)

// Faults are the probabilities, from 0 to 1, of the outcomes of a call.
type Faults struct {
	AppendNotWritten, AppendWritten, AppendUnsynced float64
	SnapshotNotWritten, SnapshotWritten             float64
}

type savedSnapshot struct {
	at      uint64
	payload []byte
}

// ErrDisk is the first cause of failures by a fault, ErrCrashed that of failures by a crash.
var (
	ErrDisk    = errors.New("simulated disk error")
	ErrCrashed = errors.New("simulated crash")
)

// NewMemory returns an empty disk without faults.
func NewMemory(seed uint64) *Memory {
	return &Memory{chance: rand.New(rand.NewPCG(seed, 0)), first: 1}
}

// SetFaults sets the probabilities for later calls.
func (m *Memory) SetFaults(faults Faults) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = faults
}

// FailNext sets the outcomes of the next appends, one fault each; chance decides only after them.
func (m *Memory) FailNext(faults ...Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next.appends = append(m.next.appends, faults...)
}

// FailNextSave sets the outcomes of the next saves of a snapshot, as FailNext does for appends.
func (m *Memory) FailNextSave(faults ...Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next.saves = append(m.next.saves, faults...)
}

// Open opens the journal, and fences the one that was open before. Like real engines, it first syncs unsynced data on
// the disk, because data that was once read must not vanish later.
func (m *Memory) Open() (journal.Journal, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keepPending()
	if m.writer != nil {
		m.writer.failLocked(journal.ErrFenced)
	}
	m.writer = &memoryJournal{disk: m}
	return m.writer, nil
}

// Crash loses or keeps unsynced data, depending on the seed, and fails the open journal.
func (m *Memory) Crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pending != nil && m.chance.IntN(2) == 0 {
		m.keepPending()
	}
	m.pending = nil
	if m.writer != nil {
		m.writer.failLocked(ErrCrashed)
		m.writer = nil
	}
}

func (m *Memory) keepPending() {
	if m.pending != nil {
		m.entries = append(m.entries, m.pending)
		m.pending = nil
	}
}

func (m *Memory) last() uint64 { return m.first + uint64(len(m.entries)) - 1 }

// outcome draws the fault of one call. It draws the same number of times for every outcome, so that a seed's later
// outcomes do not depend on earlier settings.
func (m *Memory) outcome(next *[]Fault, notWritten, written, unsynced float64) Fault {
	if set := *next; len(set) > 0 {
		*next = set[1:]
		return set[0]
	}
	switch draw := m.chance.Float64(); {
	case draw < notWritten:
		return NotWritten
	case draw < notWritten+written:
		return Written
	case draw < notWritten+written+unsynced:
		return Unsynced
	}
	return None
}

// memoryJournal is an open journal on a Memory.
type memoryJournal struct {
	disk   *Memory
	failed error // guarded by disk.mu, like closed
	closed bool
}

func (j *memoryJournal) failLocked(cause error) {
	if j.failed == nil && !j.closed {
		j.failed = cause
	}
}

func (j *memoryJournal) usableLocked() error {
	switch {
	case j.closed:
		return journal.ErrClosed
	case j.failed != nil:
		return fmt.Errorf("%w: %w", journal.ErrFailed, j.failed)
	}
	return nil
}

func (j *memoryJournal) Append(ctx context.Context, next uint64, batch []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m := j.disk
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := j.usableLocked(); err != nil {
		return fmt.Errorf("append entry %d: %w", next, err)
	}
	if next != m.last()+1 {
		return fmt.Errorf("append entry %d: %w: the last one is %d", next, journal.ErrOutOfOrder, m.last())
	}
	if len(batch) > journal.MaxBatchBytes {
		return fmt.Errorf("append entry %d: batch of %d bytes, at most %d allowed", next, len(batch), journal.MaxBatchBytes)
	}
	stored := append(make([]byte, 0, len(batch)), batch...) // never nil
	switch m.outcome(&m.next.appends, m.faults.AppendNotWritten, m.faults.AppendWritten, m.faults.AppendUnsynced) {
	case None:
		m.entries = append(m.entries, stored)
		return nil
	case Written:
		m.entries = append(m.entries, stored)
	case Unsynced:
		m.pending = stored
	}
	j.failLocked(ErrDisk)
	return fmt.Errorf("append entry %d: %w", next, j.usableLocked())
}

func (j *memoryJournal) Read(ctx context.Context, from uint64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		m := j.disk
		m.mu.Lock()
		err := j.usableLocked()
		last := m.last()
		begin := from
		if begin == 0 {
			begin = m.first
		}
		m.mu.Unlock()
		for number := begin; err == nil && number <= last; number++ {
			var entry journal.Entry
			if entry, err = j.entry(ctx, number); err == nil && !yield(entry, nil) {
				return
			}
		}
		if err == nil && begin > last {
			_, err = j.entry(ctx, begin) // an empty range can be trimmed as well
			if errors.Is(err, errNoEntry) {
				err = nil
			}
		}
		if err != nil {
			yield(journal.Entry{}, fmt.Errorf("read journal from entry %d: %w", from, err))
		}
	}
}

var errNoEntry = errors.New("not appended yet")

// entry locks for each entry anew, because the reader may append in between.
func (j *memoryJournal) entry(ctx context.Context, number uint64) (journal.Entry, error) {
	if err := ctx.Err(); err != nil {
		return journal.Entry{}, err
	}
	m := j.disk
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := j.usableLocked(); err != nil {
		return journal.Entry{}, err
	}
	switch {
	case number < m.first:
		return journal.Entry{}, fmt.Errorf("%w: the oldest is %d", journal.ErrTrimmed, m.first)
	case number > m.last():
		return journal.Entry{}, errNoEntry
	}
	return journal.Entry{Number: number, Batch: bytes.Clone(m.entries[number-m.first])}, nil
}

func (j *memoryJournal) SaveSnapshot(ctx context.Context, at uint64, write func(io.Writer) error) error {
	m := j.disk
	m.mu.Lock()
	err := j.usableLocked()
	if latest, last := m.saved.at, m.last(); err == nil && (at == 0 || at < latest || at > last) {
		err = fmt.Errorf("%w: the latest snapshot was taken after entry %d, the last entry is %d", journal.ErrOutOfOrder, latest, last)
	}
	m.mu.Unlock()
	var payload bytes.Buffer
	if err == nil { // without the lock, because other calls continue meanwhile
		err = write(&contextWriter{ctx, &payload})
	}
	if err == nil {
		err = j.keepSnapshot(ctx, savedSnapshot{at, payload.Bytes()})
	}
	if err != nil {
		return fmt.Errorf("save snapshot after entry %d: %w", at, err)
	}
	return nil
}

func (j *memoryJournal) keepSnapshot(ctx context.Context, snapshot savedSnapshot) error {
	m := j.disk
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := errors.Join(ctx.Err(), j.usableLocked()); err != nil {
		return err
	}
	switch m.outcome(&m.next.saves, m.faults.SnapshotNotWritten, m.faults.SnapshotWritten, 0) {
	case None:
		m.saved = snapshot
		return nil
	case Written:
		m.saved = snapshot
	}
	return ErrDisk
}

type contextWriter struct {
	ctx context.Context
	out io.Writer
}

func (w *contextWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.out.Write(p)
}

func (j *memoryJournal) LatestSnapshot(ctx context.Context) (at uint64, r io.ReadCloser, err error) {
	m := j.disk
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := errors.Join(ctx.Err(), j.usableLocked()); err != nil {
		return 0, nil, fmt.Errorf("open latest snapshot: %w", err)
	}
	if m.saved.at == 0 {
		return 0, nil, nil
	}
	return m.saved.at, io.NopCloser(bytes.NewReader(m.saved.payload)), nil
}

func (j *memoryJournal) Trim(ctx context.Context, before uint64) error {
	m := j.disk
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := errors.Join(ctx.Err(), j.usableLocked()); err != nil {
		return fmt.Errorf("trim before entry %d: %w", before, err)
	}
	if before <= m.first {
		return nil
	}
	if before > m.saved.at+1 {
		return fmt.Errorf("trim before entry %d: %w: the latest snapshot was taken after entry %d", before, journal.ErrOutOfOrder, m.saved.at)
	}
	kept := m.entries[before-m.first:]
	m.entries = append(make([][]byte, 0, len(kept)), kept...) // frees the others
	m.first = before
	return nil
}

func (j *memoryJournal) Last(ctx context.Context) (uint64, error) {
	m := j.disk
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := errors.Join(ctx.Err(), j.usableLocked()); err != nil {
		return 0, err
	}
	return m.last(), nil
}

func (j *memoryJournal) Close() error {
	m := j.disk
	m.mu.Lock()
	defer m.mu.Unlock()
	j.closed = true
	if m.writer == j {
		m.writer = nil
	}
	return nil
}
