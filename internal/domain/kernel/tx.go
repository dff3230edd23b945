package kernel

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Env is what a command needs from outside, and where its transaction goes.
type Env struct {
	Now    domain.Time // never before the time of an earlier command: Execute sees to that
	Number uint64      // of the journal entry that will hold the transaction
	Seed   domain.UUID // random; identifiers that a command makes beside its own come from it

	Batch  []byte    // the transaction is appended here
	Events []Emitted // the events of the kinds in Follow are appended here
	Follow KindMask  // the kinds that followers have asked for
}

// Emitted is an event as its followers get it: the fact, and what they need beside it.
type Emitted struct {
	Event  Event
	At     domain.Time // of its transaction
	Part   uint32      // number of its transaction in the journal entry, from 1
	Before any         // what the event changes, as it was before; see the room's Before
}

// Rememberer is a room some of whose followers need the state before an event.
type Rememberer interface {
	// Before returns what an event that is about to be applied changes, as it is now; nil if followers do not need it.
	Before(Event) any
}

// Tx is one command on its way: the clocks that it is decided by, and the facts that it has stated.
type Tx struct {
	Now     domain.Time
	Contact domain.ContactTime
	Cmd     Command // the command itself, without the Asked around it
	Cause   string  // what players' keys are changed by: a call or a deadline; empty: the command

	k     *Kernel
	env   *Env
	start int // where the transaction begins in env.Batch
	open  bool
	ends  uint8 // rooms that settle at the end
	ids   uint64
}

// Of returns the room of a type, with its part of the transaction. Each room's commands begin with it.
func Of[R Room](t *Tx) R {
	for _, room := range t.k.rooms {
		if r, ok := room.(R); ok {
			return r
		}
	}
	var r R
	panic(fmt.Sprintf("no room is a %T", r))
}

// AtEnd has the room settle once the command has been decided.
func (t *Tx) AtEnd(no RoomNo) { t.ends |= 1 << no }

// Emitted reports whether the command has stated any fact.
func (t *Tx) Emitted() bool { return t.open }

// Bytes is how long the transaction is by now.
func (t *Tx) Bytes() int { return len(t.env.Batch) - t.start }

// CommandName is the name of the command's type.
func (t *Tx) CommandName() string {
	name := fmt.Sprintf("%T", t.Cmd)
	return name[strings.LastIndexByte(name, '.')+1:]
}

// Field numbers of proto/journal.proto.
const (
	batchTransaction  = 1 // Batch.transactions
	transactionAt     = 1 // Transaction.at_ms
	transactionEvents = 2 // Transaction.events
	lengthDelimited   = 2 // wire type
)

// Emit states a fact: it is applied at once and becomes part of the transaction. After it the command cannot be refused.
func (t *Tx) Emit(e Event) {
	b := t.env.Batch
	if !t.open {
		t.open = true
		t.k.part++
		b = append(b, batchTransaction<<3|lengthDelimited, 0)
		b = append(b, transactionAt<<3)
		b = binary.AppendUvarint(b, uint64(t.Now))
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
		t.env.Events = append(t.env.Events, Emitted{e, t.Now, t.k.part, t.k.stateBefore(e)})
	}
	if t.k.before != nil {
		t.k.before(e)
	}
	t.k.apply(t.Now, e)
}

func (k *Kernel) stateBefore(e Event) any {
	if r, ok := k.owners[e.Kind()].(Rememberer); ok {
		return r.Before(e)
	}
	return nil
}

// close completes the transaction's bytes.
func (t *Tx) close() { t.env.Batch = wire.PrefixLength(t.env.Batch, t.start+1) }

// NewID makes an identifier for something that the command brings about beside what it names.
func (t *Tx) NewID() domain.UUID {
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
