package kernel

import (
	"encoding/binary"
	"fmt"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

// EachEvent calls f for each event of a journal entry, with the time of its transaction.
func (k *Kernel) EachEvent(batch []byte, f func(at domain.Time, e Event)) error {
	return k.eachEvent(batch, &wire.Reader{}, func() {}, f)
}

// Forgets returns how many ended records a journal entry drops from memory.
func Forgets(batch []byte) (n int, err error) {
	err = eachBody(batch, func() {}, func(_ domain.Time, kind uint64, body []byte) error {
		if kind != uint64((*Forgotten).Kind(nil)) {
			return nil
		}
		var e Forgotten
		err := (&wire.Reader{}).Read(body, &e)
		n += int(e.Count)
		return err
	})
	return n, err
}

// eachEvent decodes a journal entry: its transactions with their times and events. It calls begin before each transaction.
func (k *Kernel) eachEvent(batch []byte, r *wire.Reader, begin func(), f func(domain.Time, Event)) error {
	return eachBody(batch, begin, func(at domain.Time, kind uint64, body []byte) error {
		var e Event
		if kind < kindsMax {
			e = k.NewEvent(Kind(kind))
		}
		if e == nil {
			// If this process skipped the event, its state would silently differ from that of the process that wrote it.
			return &LaterRelease{What: fmt.Sprintf("an event of kind %d", kind), Known: k.known}
		}
		if err := r.Read(body, e); err != nil {
			return fmt.Errorf("event %T: %w", e, err)
		}
		if raised, ok := e.(*LevelRaised); ok {
			if err := k.checkLevel(uint(raised.Level)); err != nil {
				return err
			}
		}
		f(at, e)
		return nil
	})
}

// Entry is a journal entry whose events are decoded.
type Entry struct {
	Number uint64
	events []decoded
}

type decoded struct {
	event Event
	at    domain.Time
	part  uint32 // number of the transaction in the entry, from 1
}

// ReadEntry decodes a journal entry for ReplayEntry. It does not access the state, so it may run while earlier entries are replayed.
func (k *Kernel) ReadEntry(r *wire.Reader, number uint64, batch []byte) (Entry, error) {
	entry := Entry{Number: number}
	part := uint32(0)
	err := k.eachEvent(batch, r, func() { part++ }, func(at domain.Time, e Event) { entry.events = append(entry.events, decoded{e, at, part}) })
	return entry, err
}

// eachBody walks a journal entry without decoding its events.
func eachBody(batch []byte, begin func(), f func(at domain.Time, kind uint64, body []byte) error) error {
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
		if err := eachOfTransaction(body, f); err != nil {
			return err
		}
	}
	return nil
}

func eachOfTransaction(b []byte, f func(at domain.Time, kind uint64, body []byte) error) error {
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
		if err := f(domain.Time(at), kind, body); err != nil {
			return err
		}
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
