package cell

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/wire"
)

// tx is one command on its way: what it may read, and the facts it has stated.
type tx struct {
	c       *Cell
	env     *Env
	now     domain.Time
	contact domain.ContactTime
	start   int // where the transaction begins in env.Batch
	open    bool
	ids     uint64
	dirty   []placement.Ref // placements that have to look for a place before the transaction ends
	flow    flowTx
	cmd     Command    // without who asks for it
	by      flow.Actor // who asks for it, if the command itself does not tell
}

// Field numbers of proto/journal.proto.
const (
	batchTransaction  = 1 // Batch.transactions
	transactionAt     = 1 // Transaction.at_ms
	transactionEvents = 2 // Transaction.events
	lengthDelimited   = 2 // wire type
)

// emit states a fact: it is applied at once and becomes part of the transaction. After it the command cannot be refused.
func (t *tx) emit(e Event) {
	b := t.env.Batch
	if !t.open {
		t.open = true
		t.c.part++
		b = append(b, batchTransaction<<3|lengthDelimited, 0)
		b = append(b, transactionAt<<3)
		b = binary.AppendUvarint(b, uint64(t.now))
	}
	b = append(b, transactionEvents<<3|lengthDelimited, 0)
	event := len(b) - 1
	b = binary.AppendUvarint(b, uint64(e.Kind())<<3|lengthDelimited)
	b = append(b, 0)
	body := len(b) - 1
	b = wire.Append(b, e)
	b = wire.PrefixLength(b, body)
	t.env.Batch = wire.PrefixLength(b, event)
	if t.env.Follow.Has(e.Kind()) {
		t.env.Events = append(t.env.Events, Emitted{e, t.now, t.c.part, t.c.before(e)})
	}
	if t.c.config.Flow != nil {
		t.noteActions(e)
	}
	t.c.apply(t.now, e)
}

// close completes the transaction's bytes.
func (t *tx) close() { t.env.Batch = wire.PrefixLength(t.env.Batch, t.start+1) }

// newID makes an identifier for something that the command brings about beside what it names.
func (t *tx) newID() domain.UUID {
	t.ids++
	id := t.env.Seed
	x := binary.LittleEndian.Uint64(id[:8]) ^ mix(t.ids)
	y := binary.LittleEndian.Uint64(id[8:]) ^ mix(t.ids+1<<32)
	binary.LittleEndian.PutUint64(id[:8], x)
	binary.LittleEndian.PutUint64(id[8:], y)
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// mix spreads a small number over 64 bits (the finaliser of splitmix64).
func mix(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// EachEvent calls f for each event of a journal entry, with the time of its transaction.
func EachEvent(batch []byte, f func(at domain.Time, e Event)) error {
	return eachEvent(batch, &wire.Reader{}, func() {}, f)
}

// eachEvent walks a journal entry: transactions, their time, their events. It calls begin before each transaction.
func eachEvent(batch []byte, r *wire.Reader, begin func(), f func(domain.Time, Event)) error {
	for len(batch) > 0 {
		num, body, rest, err := next(batch)
		if err != nil {
			return err
		}
		batch = rest
		if num != batchTransaction {
			return fmt.Errorf("batch has a field %d, want transactions only: %w", num, wire.ErrMalformed)
		}
		begin()
		if err := eachOfTransaction(body, r, f); err != nil {
			return err
		}
	}
	return nil
}

func eachOfTransaction(b []byte, r *wire.Reader, f func(domain.Time, Event)) error {
	if len(b) == 0 || b[0] != transactionAt<<3 {
		return fmt.Errorf("transaction does not begin with its time: %w", wire.ErrMalformed)
	}
	at, n := binary.Uvarint(b[1:])
	if n <= 0 {
		return wire.ErrMalformed
	}
	for b = b[1+n:]; len(b) > 0; {
		num, event, rest, err := next(b)
		if err != nil {
			return err
		}
		if num != transactionEvents {
			return fmt.Errorf("transaction has a field %d, want events only: %w", num, wire.ErrMalformed)
		}
		b = rest
		kind, body, rest, err := next(event)
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			return fmt.Errorf("event of kind %d is followed by another one: %w", kind, wire.ErrMalformed)
		}
		var e Event
		if kind <= math.MaxUint8 {
			e = newEvent(Kind(kind))
		}
		if e == nil {
			// Skipping it would make this process quietly different from the one that wrote it.
			return fmt.Errorf("event of unknown kind %d: written by a later release", kind)
		}
		if err := r.Read(body, e); err != nil {
			return fmt.Errorf("event %T: %w", e, err)
		}
		f(domain.Time(at), e)
	}
	return nil
}

// next splits one length-delimited field off b.
func next(b []byte) (num uint64, body, rest []byte, err error) {
	tag, n := binary.Uvarint(b)
	if n <= 0 || tag&7 != lengthDelimited {
		return 0, nil, nil, wire.ErrMalformed
	}
	l, m := binary.Uvarint(b[n:])
	if m <= 0 || l > uint64(len(b)-n-m) {
		return 0, nil, nil, wire.ErrMalformed
	}
	b = b[n+m:]
	return tag >> 3, b[:l], b[l:], nil
}
