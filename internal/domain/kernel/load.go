package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Together calls task(0) to task(n-1) and returns when all have ended. The tasks are independent and may run concurrently: the owner of the
// core decides that, because the core starts no goroutines.
type Together func(n int, task func(i int))

func inTurn(n int, task func(i int)) {
	for i := range n {
		task(i)
	}
}

// Load fills an empty cell from a snapshot.
func (k *Kernel) Load(from io.Reader) error { return k.LoadTogether(from, inTurn) }

// LoadTogether is Load with tasks that may run concurrently. The state does not depend on how they run.
//
// It takes the snapshot in batches. While one batch is decoded, the next one is read. Records of very numerous kinds (Bulk) are decoded in
// groups; all other parts of a batch form one task, in their order. A room connects its records in Restore, after all have been loaded.
func (k *Kernel) LoadTogether(from io.Reader, together Together) error {
	k.together = together
	defer func() { k.together = inTurn }()
	l := Loader{strings: wire.NewStrings()}
	l.Reader.Share(l.strings)
	r := partReader{from: from}
	now, following := new(batch), new(batch)
	for r.read(now); !l.ended; now, following = following, now {
		single, groups := k.split(&l, now.parts)
		tasks := []func() error{
			func() error { return k.loadEach(&l, single) },
			func() error { r.read(following); return nil },
		}
		if err := k.Together(append(tasks, groups...)...); err != nil {
			return err
		}
		if !l.ended && now.err != nil {
			return now.err
		}
	}
	return k.restore(&l.Head)
}

// Together runs independent tasks, concurrently if possible while a snapshot is loaded. It returns the error of the first task in the list that
// failed.
func (k *Kernel) Together(tasks ...func() error) error {
	errs := make([]error, len(tasks))
	k.together(len(tasks), func(i int) { errs[i] = tasks[i]() })
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// bulk is a room with a very numerous kind of record.
type bulk interface {
	// Bulk adds n records of the kind and returns the function that decodes the i-th of them; nil for kinds that Load handles.
	Bulk(kind uint64, n int) Decode
}

// Decode decodes the i-th of some records. It accesses nothing else, so that other records may be decoded concurrently.
type Decode func(r *wire.Reader, i int, body []byte) error

// Place adds n records to a table and returns the function that decodes them, for Bulk. done, if not nil, completes each record.
func Place[T any, M interface {
	*T
	wire.Message
}](t chunk.Table[T], n int, done func(*T)) Decode {
	records := make([]*T, n)
	for i := range records {
		_, records[i] = t.Add()
	}
	return func(r *wire.Reader, i int, body []byte) error {
		err := r.Read(body, M(records[i]))
		if err == nil && done != nil {
			done(records[i])
		}
		return err
	}
}

// groupParts is how many records one task decodes.
const groupParts = 256

// split separates the parts that are loaded one after another from the bulk parts, for which it returns tasks.
func (k *Kernel) split(l *Loader, parts []part) (single []part, groups []func() error) {
	for len(parts) > 0 {
		n := 1
		for n < len(parts) && parts[n].kind == parts[0].kind {
			n++
		}
		some := parts[:n]
		parts = parts[n:]
		decode := k.bulk(some[0].kind, n)
		if decode == nil {
			single = append(single, some...)
			continue
		}
		for at := 0; at < n; at += groupParts {
			groups = append(groups, func() error {
				r := l.readers.take(l.strings)
				defer l.readers.put(r)
				for i := at; i < min(at+groupParts, n); i++ {
					if err := decode(r, i, some[i].body); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	return single, groups
}

func (k *Kernel) bulk(kind uint64, n int) Decode {
	for _, room := range k.bulky {
		if decode := room.Bulk(kind, n); decode != nil {
			return decode
		}
	}
	return nil
}

// Loader reads the parts of a snapshot for the rooms.
type Loader struct {
	Reader  wire.Reader
	Head    Head // the first part
	strings *wire.Strings
	readers readers
	ended   bool
}

// readers is the pool of readers that no task is using.
type readers struct {
	lock sync.Mutex
	idle []*wire.Reader
}

func (x *readers) take(s *wire.Strings) (r *wire.Reader) {
	x.lock.Lock()
	defer x.lock.Unlock()
	if n := len(x.idle); n > 0 {
		r, x.idle = x.idle[n-1], x.idle[:n-1]
		return r
	}
	r = new(wire.Reader)
	r.Share(s)
	return r
}

func (x *readers) put(r *wire.Reader) {
	x.lock.Lock()
	defer x.lock.Unlock()
	x.idle = append(x.idle, r)
}

func (k *Kernel) loadEach(l *Loader, parts []part) error {
	for _, p := range parts {
		if err := k.load(l, p); err != nil {
			return err
		}
	}
	return nil
}

func (k *Kernel) load(l *Loader, p part) error {
	switch p.kind {
	case partHead:
		if err := l.Reader.Read(p.body, &l.Head); err != nil {
			return err
		}
		return k.checkLevel(uint(l.Head.Level))
	case partEnd:
		l.ended = true
		return nil
	}
	for _, room := range k.rooms {
		if room == nil {
			continue
		}
		if known, err := room.Load(l, p.kind, p.body); known || err != nil {
			return err
		}
	}
	return &LaterRelease{What: fmt.Sprintf("a snapshot part of kind %d", p.kind), Known: k.known}
}

// restore rebuilds the data that the snapshot omits, room by room.
func (k *Kernel) restore(h *Head) error {
	k.last, k.downtime, k.forgotten, k.level = h.Last, h.Downtime, h.Forgotten, max(uint(h.Level), 1)
	k.restoreEnded(h.EndedNo)
	for _, room := range k.rooms {
		if room == nil {
			continue
		}
		if err := room.Restore(h); err != nil {
			return err
		}
	}
	return nil
}

// LoadInto adds a record to a table.
func LoadInto[T any, M interface {
	*T
	wire.Message
}](l *Loader, body []byte, t chunk.Table[T]) error {
	_, record := t.Add()
	return l.Reader.Read(body, M(record))
}

// LoadWith reads a record and calls put with it.
func LoadWith[T any, M interface {
	*T
	wire.Message
}](l *Loader, body []byte, put func(T)) error {
	var x T
	err := l.Reader.Read(body, M(&x))
	if err == nil {
		put(x)
	}
	return err
}

// part is a record in a snapshot.
type part struct {
	kind uint64
	body []byte // in the buffer of its batch
}

// batch holds consecutive parts of a snapshot.
type batch struct {
	buffer []byte
	parts  []part
	err    error // the read error after them, if they are the last ones
}

const (
	batchBytes = 4 << 20  // bytes to read at a time, unless a part is longer
	maxPart    = 16 << 20 // bounds the allocation for a corrupt length; the largest record is a game session with maximal data
)

// partReader reads a snapshot in batches.
type partReader struct {
	from  io.Reader
	rest  []byte // the beginning of a part, in the buffer of the previous batch
	ended bool
}

// read reads the next batch. It invalidates the batch before the previous one.
func (r *partReader) read(b *batch) {
	b.parts = b.parts[:0]
	for size := max(batchBytes, len(b.buffer)); len(b.parts) == 0 && b.err == nil && !r.ended; size *= 2 { // repeats with a larger size if a part is longer
		if len(b.buffer) < size {
			b.buffer = make([]byte, size)
		}
		had := copy(b.buffer, r.rest)
		if had < len(r.rest) {
			continue
		}
		n, err := io.ReadFull(r.from, b.buffer[had:])
		r.rest = b.buffer[:had+n]
		r.split(b)
		if err != nil && b.err == nil && !r.ended {
			b.err = fmt.Errorf("snapshot: %w", err)
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				b.err = fmt.Errorf("snapshot ends before its end mark: %w", io.ErrUnexpectedEOF)
			}
		}
	}
}

// split finds the parts in what was read.
func (r *partReader) split(b *batch) {
	for {
		length, n := binary.Uvarint(r.rest)
		switch {
		case n < 0 || length > maxPart:
			b.err = fmt.Errorf("snapshot part of %d bytes: %w", length, wire.ErrMalformed)
			return
		case n == 0 || uint64(len(r.rest)-n) < length:
			return
		}
		kind, body, _, err := next(r.rest[n : n+int(length)])
		if err != nil {
			b.err = fmt.Errorf("snapshot part: %w", err)
			return
		}
		b.parts = append(b.parts, part{kind, body})
		r.rest = r.rest[n+int(length):]
		if kind == partEnd {
			r.ended = true
			return
		}
	}
}
