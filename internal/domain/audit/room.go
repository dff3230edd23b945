package audit

import (
	"encoding/binary"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Room is the room's number.
const Room kernel.RoomNo = 7

// KeptMin is the shortest retention of entries. The archive keeps all other records as long.
const KeptMin = 30 * 24 * time.Hour

// Config configures the room.
type Config struct {
	Kept time.Duration // retention of an entry: at least KeptMin, and at least until the entries before it expire
}

// DefaultConfig keeps entries for 400 days: a year, plus time to review it.
func DefaultConfig() Config { return Config{Kept: 400 * 24 * time.Hour} }

// Hooks tells what a command is about.
type Hooks interface {
	// Describe returns the kind and id of the record that a command changes, and its current state; nil if there is none.
	Describe(cmd kernel.Command) (kind, id string, record any)
}

// Head is the end of the chain.
type Head struct {
	No    uint64 // of the last entry; 0: there is none
	Hash  []byte // of its stored form
	Until domain.Time

	Exports []Position // of receivers; the one that has not moved for the longest time comes first
}

func (h *Head) Fields(c *wire.Codec) {
	wire.Int(c, 1, &h.No)
	c.Bytes(2, &h.Hash)
	wire.Int(c, 3, &h.Until)
	wire.Many(c, 4, &h.Exports, (*Position).Fields)
}

// Level returns the level of this part of a snapshot.
func (*Head) Level() uint { return Level }

// Waiting is an entry in memory that waits for the archive.
type Waiting struct {
	EndedNo uint64
	Entry   Entry
	Ended   domain.Time // time of its transaction, which orders how entries leave memory; Entry.At may come from a wrong clock
}

func (w *Waiting) Fields(c *wire.Codec) {
	wire.Int(c, 1, &w.EndedNo)
	wire.Sub(c, 2, &w.Entry, true, (*Entry).Fields)
	wire.Int(c, 3, &w.Ended)
}

// Level returns the level of this part of a snapshot.
func (*Waiting) Level() uint { return Level }

// Position is how much of the log a receiver outside the service has.
type Position struct {
	Receiver string
	No       uint64 // of the last entry that it has
}

func (p *Position) Fields(c *wire.Codec) {
	c.String(1, &p.Receiver)
	wire.Int(c, 2, &p.No)
}

// Exported returns the number of the last entry that a receiver has; 0: none.
func (h *Head) Exported(receiver string) uint64 {
	for _, p := range h.Exports {
		if p.Receiver == receiver {
			return p.No
		}
	}
	return 0
}

// exported returns the positions with p added at the end. Beyond ExportsMax, it drops the one that has not moved for the longest
// time.
func (h *Head) exported(p Position) []Position {
	all := make([]Position, 0, len(h.Exports)+1) // a new slice, because a snapshot may share the other
	for _, x := range h.Exports {
		if x.Receiver != p.Receiver {
			all = append(all, x)
		}
	}
	all = append(all, p)
	return all[max(0, len(all)-ExportsMax):]
}

// State is the end of the chain, and the entries that are not in the archive yet.
type State struct {
	*kernel.Kernel
	config  *Config
	hooks   Hooks
	head    Head
	waiting []*Waiting // in order; a snapshot may share it, so it is only cut and appended to
}

// Tx is the room: its state and its part of the current transaction.
type Tx struct {
	*kernel.Tx
	*State
	kernel.Plain
}

// New returns an empty room.
func New(k *kernel.Kernel, config *Config, hooks Hooks) *Tx {
	return &Tx{Tx: k.Tx(), State: &State{Kernel: k, config: config, hooks: hooks}}
}

// Events returns the constructors of the room's events.
func (*Tx) Events() []func() kernel.Event { return events }

// Apply appends an entry to the chain, or moves the position of a receiver.
func (c *State) Apply(at domain.Time, event kernel.Event) {
	if x, ok := event.(*AuditExported); ok {
		c.head.Exports = c.head.exported(Position{x.Receiver, x.No})
		c.Touch()
		return
	}
	e := event.(*AuditRecorded).Entry
	w := &Waiting{EndedNo: c.Ended.Next(), Entry: e, Ended: at}
	c.head.No, c.head.Hash, c.head.Until = e.No, Hash(e.Stored()), e.Until
	c.waiting = append(c.waiting, w)
	c.Ended.Push(kernel.Ended{Room: Room, Ref: chunk.AnyRef(e.No)})
	c.Touch()
}

// Field numbers of message SnapshotPart in proto/journal.proto.
const (
	partHead    = 110
	partWaiting = 111
)

// Freeze returns the room's part of a snapshot.
func (c *State) Freeze(*kernel.Head) []kernel.Frozen {
	head, waiting := c.head, c.waiting
	return []kernel.Frozen{func(w *kernel.PartWriter) {
		if head.No == 0 {
			return
		}
		w.Part(partHead, &head)
		for _, x := range waiting {
			w.Part(partWaiting, x)
		}
	}}
}

// Load reads a part of a snapshot.
func (c *State) Load(l *kernel.Loader, kind uint64, body []byte) (known bool, err error) {
	switch kind {
	case partHead:
		return true, kernel.LoadWith(l, body, func(x Head) { c.head = x })
	case partWaiting:
		return true, kernel.LoadWith(l, body, func(x Waiting) { c.waiting = append(c.waiting, &x) })
	}
	return false, nil
}

// Restore has nothing to rebuild.
func (c *State) Restore(*kernel.Head) error { return nil }

// EachEnded yields the entries in memory, which count as ended from the start.
func (t *Tx) EachEnded(yield func(no uint64, e kernel.Ended)) {
	for _, w := range t.waiting {
		yield(w.EndedNo, kernel.Ended{Room: Room, Ref: chunk.AnyRef(w.Entry.No)})
	}
}

// Drop drops the oldest entry: entries leave memory in order.
func (t *Tx) Drop(kernel.Ended) (counts bool) {
	t.waiting = t.waiting[1:] // a snapshot may still read the entry
	return false
}

// View reads the room's state.
type View struct {
	kernel.Reader
	c *State
}

// View returns a View. It is valid until the next command is executed.
func (c *State) View() View { return View{c.Reader(), c} }

// EndedRecord returns an entry, for the archive.
func (v *View) EndedRecord(x kernel.Ended) kernel.EndedRecord {
	v.SawAll()
	w := v.c.waiting[uint32(x.Ref)-uint32(v.c.waiting[0].Entry.No)]
	e := &w.Entry
	return kernel.EndedRecord{Kind: kernel.AnAuditEntry, ID: ArchiveID(e.No), Created: e.At, Ended: w.Ended, Until: e.Until, GameID: ArchiveGroup(e.No), Data: e.Stored()}
}

// AuditHead returns the end of the chain.
func (v *View) AuditHead() Head {
	v.SawAll()
	return v.c.head
}

// AuditWaits returns how many entries are in memory.
func (v *View) AuditWaits() int {
	v.SawAll()
	return len(v.c.waiting)
}

// AuditWaiting returns the entries in memory with numbers from first to last.
func (v *View) AuditWaiting(first, last uint64) (some []*Waiting) {
	v.SawAll()
	for _, w := range v.c.waiting {
		if w.Entry.No >= first && w.Entry.No <= last {
			some = append(some, w)
		}
	}
	return some
}

// ArchiveID returns the id of an entry in the archive.
func ArchiveID(no uint64) string { return string(binary.BigEndian.AppendUint64(nil, no)) }

// GroupSize is how many consecutive entries share a group in the archive, so that they can be listed together.
const GroupSize = 256

// ArchiveGroup returns the group of an entry in the archive.
func ArchiveGroup(no uint64) string { return "audit" + ArchiveID(no/GroupSize) }
