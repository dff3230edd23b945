package kernel

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Env holds the external input of a command and receives its transaction.
type Env struct {
	Now    domain.Time // Execute never lets it go back before the time of an earlier command
	Number uint64      // of the journal entry that will contain the transaction
	Seed   domain.UUID // random; further identifiers of the command derive from it

	Batch  []byte    // the transaction is appended here
	Events []Emitted // the events of the kinds in Follow are appended here
	Follow KindMask  // the kinds that followers have asked for
}

// Emitted is an event with the context that its followers need.
type Emitted struct {
	Event  Event
	At     domain.Time // of its transaction
	Part   uint32      // number of its transaction in the journal entry, from 1
	Before any         // the state before the event; see Rememberer
}

// Rememberer is a room whose followers need the state before an event.
type Rememberer interface {
	// Before returns the current state of what an event is about to change; nil if no follower needs it.
	Before(Event) any
}

// Tx is the transaction of one command: the time of its decision and the events emitted so far.
type Tx struct {
	Now     domain.Time
	Contact domain.ContactTime
	Cmd     Command // the command itself, without the Asked around it
	Cause   string  // the call or deadline that changes players' keys; empty: the command

	k     *Kernel
	env   *Env
	start int // where the transaction begins in env.Batch
	open  bool
	ends  uint16 // rooms that settle at the end
	ids   uint64
}

// Of returns the room of a type, bound to the transaction. Each room's commands call it first.
func Of[R Room](t *Tx) R {
	for _, room := range t.k.rooms {
		if r, ok := room.(R); ok {
			return r
		}
	}
	var r R
	panic(fmt.Sprintf("no room is a %T", r))
}

// AtEnd schedules the room's Settle for the end of the command.
func (t *Tx) AtEnd(no RoomNo) { t.ends |= 1 << no }

// Emitted reports whether the command has emitted an event.
func (t *Tx) Emitted() bool { return t.open }

// Bytes returns the current length of the transaction.
func (t *Tx) Bytes() int { return len(t.env.Batch) - t.start }

// CommandName returns the name of the command's type.
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

// Emit applies an event and adds it to the transaction. After that, the command must not be refused. If the event is above the level in force, Emit
// does not return: the command is refused.
func (t *Tx) Emit(e Event) {
	if uint(t.k.levels[e.Kind()]) > t.k.level {
		t.tooEarly(e)
	}
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

// close writes the length prefix of the transaction.
func (t *Tx) close() { t.env.Batch = wire.PrefixLength(t.env.Batch, t.start+1) }

// NewID makes an identifier for a further record that the command creates.
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
