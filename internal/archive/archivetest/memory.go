package archivetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/musterhq/muster/internal/archive"
)

// Memory is the archive's disk in a simulated cell: it outlives the archives opened on it. Everything happens within the
// call, and all randomness comes from the seed.
type Memory struct {
	mu      sync.Mutex
	chance  *rand.Rand
	faults  Faults
	next    []Fault
	records map[recordID]archive.Record
	mark    *archive.Mark
	covers  *archive.Coverage
	open    *memoryArchive
}

type recordID struct {
	kind archive.Kind
	id   string
}

// Fault is an outcome of a Put.
type Fault uint8

const (
	None       Fault = iota
	NotWritten       // the Put failed and nothing was written
	Written          // the Put failed, yet everything is durable
)

// Faults are the probabilities, from 0 to 1, of the outcomes of a Put.
type Faults struct {
	NotWritten, Written float64
}

// ErrDisk is the first cause of failures by a fault, ErrCrashed that of failures by a crash.
var (
	ErrDisk    = errors.New("simulated disk error")
	ErrCrashed = errors.New("simulated crash")
)

// NewMemory returns an empty disk without faults.
func NewMemory(seed uint64) *Memory {
	return &Memory{chance: rand.New(rand.NewPCG(seed, 1)), records: map[recordID]archive.Record{}}
}

// SetFaults sets the probabilities for later calls.
func (m *Memory) SetFaults(faults Faults) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = faults
}

// FailNext sets the outcomes of the next Puts, one fault each; chance decides only after them.
func (m *Memory) FailNext(faults ...Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = append(m.next, faults...)
}

// Open opens the archive, which must not be open.
func (m *Memory) Open() (archive.Archive, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open != nil {
		return nil, archive.ErrInUse
	}
	m.open = &memoryArchive{disk: m}
	return m.open, nil
}

// Crash fails the open archive. Acknowledged data stays.
func (m *Memory) Crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open != nil {
		m.open.failed = cmp.Or(m.open.failed, ErrCrashed)
		m.open = nil
	}
}

func (m *Memory) outcome() Fault {
	if len(m.next) > 0 {
		fault := m.next[0]
		m.next = m.next[1:]
		return fault
	}
	switch draw := m.chance.Float64(); {
	case draw < m.faults.NotWritten:
		return NotWritten
	case draw < m.faults.NotWritten+m.faults.Written:
		return Written
	}
	return None
}

type memoryArchive struct {
	disk   *Memory
	failed error // guarded by disk.mu, like all below
	closed bool
	mark   *archive.Mark // the mark for the next Put to store
}

func (a *memoryArchive) SetMark(m archive.Mark) {
	a.disk.mu.Lock()
	defer a.disk.mu.Unlock()
	a.mark = &m
}

func (a *memoryArchive) Mark() (m archive.Mark, ok bool, err error) {
	a.disk.mu.Lock()
	defer a.disk.mu.Unlock()
	if a.disk.mark != nil {
		m, ok = *a.disk.mark, true
	}
	return m, ok, nil
}

func (a *memoryArchive) usable(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case a.closed:
		return archive.ErrClosed
	case a.failed != nil:
		return fmt.Errorf("%w: %w", archive.ErrFailed, a.failed)
	}
	return nil
}

func (a *memoryArchive) Put(ctx context.Context, records []archive.Record) error {
	a.disk.mu.Lock()
	defer a.disk.mu.Unlock()
	return a.put(ctx, records, nil)
}

func (a *memoryArchive) Coverage() (c archive.Coverage, ok bool, err error) {
	a.disk.mu.Lock()
	defer a.disk.mu.Unlock()
	if a.disk.covers != nil {
		c, ok = *a.disk.covers, true
	}
	return c, ok, nil
}

func (a *memoryArchive) SetCoverage(ctx context.Context, c archive.Coverage) error {
	a.disk.mu.Lock()
	defer a.disk.mu.Unlock()
	return a.put(ctx, nil, &c)
}

func (a *memoryArchive) Add(ctx context.Context, records []archive.Record, c archive.Coverage) (added int, err error) {
	a.disk.mu.Lock()
	defer a.disk.mu.Unlock()
	newer := map[recordID]archive.Record{}
	for _, r := range records {
		id := recordID{r.Kind, r.ID}
		stored, found := a.disk.records[id]
		if earlier, twice := newer[id]; twice {
			stored, found = earlier, true
		}
		if !found || r.Supersedes(&stored) {
			newer[id] = r
		}
	}
	return len(newer), a.put(ctx, slices.Collect(maps.Values(newer)), &c)
}

func (a *memoryArchive) Page(ctx context.Context, behind archive.Place, bytesMax int) (page archive.Page, err error) {
	m := a.disk
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytesMax <= 0 {
		return page, archive.ErrInvalid
	}
	if err := a.usable(ctx); err != nil {
		return page, err
	}
	placeOf := func(r archive.Record) archive.Place {
		return archive.Place{Ended: r.Ended, At: string(rune(r.Kind)) + r.ID}
	}
	compare := func(a, b archive.Place) int { return cmp.Or(cmp.Compare(a.Ended, b.Ended), cmp.Compare(a.At, b.At)) }
	var all []archive.Record
	for _, r := range m.records {
		if compare(placeOf(r), behind) > 0 {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b archive.Record) int { return compare(placeOf(a), placeOf(b)) })
	page.Next = behind
	for bytes := 0; len(page.Records) < len(all) && bytes < bytesMax; {
		r := all[len(page.Records)]
		bytes += len(r.ID) + len(r.Data)
		page.Records = append(page.Records, r)
		page.Next = placeOf(r)
	}
	page.More = len(page.Records) < len(all)
	return page, nil
}

func (a *memoryArchive) put(ctx context.Context, records []archive.Record, covers *archive.Coverage) error {
	for i := range records {
		if err := records[i].Check(); err != nil {
			return err
		}
	}
	m := a.disk
	if err := a.usable(ctx); err != nil {
		return err
	}
	outcome := m.outcome()
	if outcome != NotWritten {
		switch {
		case covers != nil:
			m.covers = covers
		case a.mark != nil:
			m.mark = a.mark
		}
		for _, r := range records {
			r.Data = bytes.Clone(r.Data)
			m.records[recordID{r.Kind, r.ID}] = r
		}
	}
	if outcome != None {
		a.failed = ErrDisk
		return a.usable(ctx)
	}
	return nil
}

func (a *memoryArchive) Get(ctx context.Context, kind archive.Kind, id string) (archive.Record, bool, error) {
	m := a.disk
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := a.usable(ctx); err != nil {
		return archive.Record{}, false, err
	}
	r, found := m.records[recordID{kind, id}]
	r.Data = bytes.Clone(r.Data)
	return r, found, nil
}

func (a *memoryArchive) List(ctx context.Context, kind archive.Kind, index archive.Index, key string, after archive.Cursor, limit int) ([]archive.Record, error) {
	m := a.disk
	m.mu.Lock()
	defer m.mu.Unlock()
	if kind == 0 || index == 0 || index > archive.ByPlayer || key == "" || limit <= 0 || after.Created < 0 {
		return nil, archive.ErrInvalid
	}
	if err := a.usable(ctx); err != nil {
		return nil, err
	}
	var found []archive.Record
	for _, r := range m.records {
		if r.Kind == kind && r.Key(index) == key && r.Cursor().Compare(after) > 0 {
			r.Data = bytes.Clone(r.Data)
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b archive.Record) int { return a.Cursor().Compare(b.Cursor()) })
	return found[:min(len(found), limit)], nil
}

func (a *memoryArchive) Expire(ctx context.Context, endedBefore int64, limit int) (removed int, err error) {
	m := a.disk
	m.mu.Lock()
	defer m.mu.Unlock()
	if limit <= 0 {
		return 0, archive.ErrInvalid
	}
	if err := a.usable(ctx); err != nil {
		return 0, err
	}
	var expired []archive.Record
	for _, r := range m.records {
		if r.Ended < endedBefore {
			expired = append(expired, r)
		}
	}
	slices.SortFunc(expired, func(a, b archive.Record) int {
		return cmp.Or(cmp.Compare(a.Ended, b.Ended), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	expired = expired[:min(len(expired), limit)]
	for _, r := range expired {
		delete(m.records, recordID{r.Kind, r.ID})
	}
	return len(expired), nil
}

func (a *memoryArchive) Close() error {
	m := a.disk
	m.mu.Lock()
	defer m.mu.Unlock()
	a.closed = true
	if m.open == a {
		m.open = nil
	}
	return nil
}
