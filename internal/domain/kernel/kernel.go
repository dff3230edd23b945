// Package kernel is what the rooms of the core share: the transaction, the two clocks, deadlines, the list of ended records, and the parts
// of a snapshot. It knows no kind of record. The rooms (hosting, gameservers, notice, matchmaking, playerflow, access, answers, membership
// and others) own records, commands and events; package cell composes them.
//
// A command is checked against the state. If it is accepted, it emits events, and each event is applied at once. The events of one command
// form one transaction: the journal gets all of them or none. A replay calls the same Apply, so a restart restores the same state.
//
// # A transaction
//
// Decide has two halves. The first half checks, and may refuse. The second half emits events with Tx.Emit, which appends the encoded event
// to the transaction in Env.Batch and applies it at once, so the rest of the command sees it. A refusal after the first event would leave
// half a command in the state, so it panics. A room that must do more at the end of the command calls AtEnd; its Settle then runs in the
// same transaction after the command is decided, and may emit.
//
// Apply is the only code that writes to records. It uses only the event, the transaction's time and the state, so the same journal gives the
// same state at any time and on any machine. Time and randomness come with the command (Env). Deadlines are computed before an event is
// emitted, and each event contains the deadlines that it sets: changing a setting does not move deadlines that are already set.
//
// # Two clocks
//
// Wall deadlines are instants. They pass while the service is down. Contact deadlines wait for a client or server that cannot reach the
// service during downtime. They use a clock that stands still meanwhile:
//
//	contact time = wall time - total downtime so far
//
// A restart moves all of them by changing that one number; no record and no deadline is rewritten. The downtime is the time from the last
// transaction to the start. Because a Tick emits Ticked at least every second while a contact deadline is set, a crash overestimates the
// downtime by at most a second, in favour of the clients. Records hold contact times; views convert them to wall time.
//
// # Restarts
//
// A cell that keeps running, one that replays the journal, and one that loads a snapshot and replays the rest have the same state. A
// snapshot holds records and a few counters (Head). Restore rebuilds indexes, references between records and deadlines from them. So a
// record contains everything that its deadlines and indexes need, and nothing depends on the places of records, which differ after a
// restart. An event or a snapshot part of an unknown kind aborts the start: if the process skipped it, its state would silently differ from
// that of the process that wrote it.
package kernel

import (
	"fmt"
	"math/bits"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Command is an instruction to change the state. Its fields below "Result" are filled in when it succeeds.
type Command interface {
	// Decide checks the command and emits what follows from it. An error is a *domain.Refusal, and then nothing was emitted.
	Decide(t *Tx) error
}

// Room is a part of the core that owns records, their commands and their events.
type Room interface {
	// Events has a constructor for each event of the room.
	Events() []func() Event
	// Apply applies one of the room's events to its state. It never fails, because the event has happened.
	Apply(at domain.Time, e Event)
	// Due handles a deadline of the room that has passed. It must always move or clear the deadline. heavy reports that a Tick should stop
	// after this much work.
	Due(d Deadline) (heavy bool)
	// Settle runs after a command that called Tx.AtEnd for this room, in the same transaction. Reset discards the work pending for Settle:
	// it runs instead of Settle if the command was refused, and after each entry of a replay.
	Settle()
	Reset()

	// Freeze returns the room's part of a snapshot: each kind of record after the kinds that it refers to.
	Freeze(*Head) []Frozen
	// Load reads a part of a snapshot; known is false if the part belongs to another room. A room with very many records of a kind also
	// implements Bulk.
	Load(l *Loader, kind uint64, body []byte) (known bool, err error)
	// Restore rebuilds the data that snapshots omit: indexes, references between records, deadlines.
	Restore(*Head) error
	// EachEnded yields the ended records in memory, with the numbers from EndedQueue.Next.
	EachEnded(yield func(no uint64, e Ended))
	// Drop removes an ended record from memory once the archive has it. It reports whether Kernel.Forgotten counts the record.
	Drop(e Ended) (counts bool)
}

// RoomNo is the number of a room. Rooms settle in the order of their numbers, which also orders deadlines of the same instant.
type RoomNo uint8

// roomsMax bounds the rooms with deadlines or work to settle, because kinds of deadlines are numbered by room. One more room may have
// neither.
const roomsMax = 15

// Kernel has what the rooms of one cell share. Only one goroutine at a time may call Execute, Replay or Freeze. Views may be used
// concurrently with each other, but not with those calls.
type Kernel struct {
	Waiting Deadlines
	Ended   EndedQueue
	Quotas  *quota.Quotas // of holders; nil: defaults

	rooms  [roomsMax + 1]Room
	bulky  []bulk         // the rooms that implement bulk
	owners [kindsMax]Room // of events, by kind; nil for the kernel's own

	constructors [kindsMax]func() Event
	levels       [kindsMax]uint8 // of the kinds of events
	known        uint            // the highest level that this program knows
	level        uint            // in force
	before       func(Event)
	tx           Tx

	last     domain.Time // when the last transaction happened
	downtime domain.Time // total downtime since the cell began, by which contact deadlines are moved
	number   uint64      // of the journal entry that is being built or replayed
	part     uint32      // number of the transaction in it that is being applied, from 1
	changed  uint64      // number of the last change

	forgotten uint64 // see Forgotten
	replayed  wire.Reader
	together  Together
}

// New returns a Kernel without rooms.
func New() *Kernel {
	k := &Kernel{Waiting: newDeadlines(), known: Level, level: 1, together: inTurn}
	k.tx.k = k
	k.own(events, nil)
	return k
}

// Register adds a room under its number. It panics if its number or the kind of an event is taken.
func (k *Kernel) Register(no RoomNo, r Room) {
	if k.rooms[no] != nil {
		panic(fmt.Sprintf("%T and %T have the same number %d", r, k.rooms[no], no))
	}
	k.rooms[no] = r
	if r, ok := r.(bulk); ok {
		k.bulky = append(k.bulky, r)
	}
	k.own(r.Events(), r)
}

func (k *Kernel) own(events []func() Event, by Room) {
	for _, construct := range events {
		empty := construct()
		kind := empty.Kind()
		if k.constructors[kind] != nil {
			panic(fmt.Sprintf("%T owns events of kind %d, which another room owns", by, kind))
		}
		k.owners[kind], k.constructors[kind] = by, construct
		k.levels[kind] = uint8(LevelOf(empty))
		k.known = max(k.known, LevelOf(empty))
	}
}

// Before sets f, which the kernel calls for each event that a command emits, before applying it. A replay does not call it.
func (k *Kernel) Before(f func(Event)) { k.before = f }

// Tx returns the current transaction; only one exists at a time.
func (k *Kernel) Tx() *Tx { return &k.tx }

// Execute decides a command. An error is a *domain.Refusal, and then nothing has changed. It reports whether anything
// was emitted.
func (k *Kernel) Execute(cmd Command, env *Env) (emitted bool, err error) {
	t := &k.tx
	now := max(env.Now, k.last)
	*t = Tx{k: k, env: env, Now: now, Contact: k.ContactTime(now), Cmd: cmd, start: len(env.Batch)}
	k.begin(env.Number)
	if k.level < k.known {
		err = t.decideBelow(cmd)
	} else {
		err = t.decide(cmd)
	}
	if t.open {
		if err != nil {
			panic(fmt.Sprintf("%T refused after it had emitted: %v", cmd, err))
		}
		t.close()
	}
	t.env, t.Cmd = nil, nil // the engine reuses them
	return t.open, err
}

func (t *Tx) decide(cmd Command) error {
	err := cmd.Decide(t)
	t.settle(err)
	return err
}

// settle runs the Settle or Reset of the rooms that called AtEnd.
func (t *Tx) settle(err error) {
	for t.ends != 0 {
		no := bits.TrailingZeros16(t.ends)
		if err == nil {
			t.k.rooms[no].Settle()
		} else {
			t.k.rooms[no].Reset()
		}
		t.ends &^= 1 << no // including an AtEnd that the room called while settling
	}
}

// Replay applies one journal entry.
func (k *Kernel) Replay(number uint64, batch []byte) error { return k.replay(number, batch, k.apply) }

// ReplayFor is Replay for followers: it returns the events of the kinds in follow, as a command would.
func (k *Kernel) ReplayFor(number uint64, batch []byte, follow KindMask) (events []Emitted, err error) {
	err = k.replay(number, batch, func(at domain.Time, e Event) {
		if follow.Has(e.Kind()) {
			events = append(events, Emitted{e, at, k.part, k.stateBefore(e)})
		}
		k.apply(at, e)
	})
	return events, err
}

func (k *Kernel) replay(number uint64, batch []byte, apply func(domain.Time, Event)) error {
	k.begin(number)
	defer k.reset()
	return k.eachEvent(batch, &k.replayed, func() { k.part++ }, apply)
}

// ReplayEntry is Replay of an already decoded entry.
func (k *Kernel) ReplayEntry(entry Entry) {
	k.begin(entry.Number)
	defer k.reset()
	for _, x := range entry.events {
		k.part = x.part
		k.apply(x.at, x.event)
	}
}

// reset discards the rooms' pending work at the end of a replay, because the journal contains its results as events.
func (k *Kernel) reset() {
	for _, room := range k.rooms {
		if room != nil {
			room.Reset()
		}
	}
}

// apply applies an event to the state of its room.
func (k *Kernel) apply(at domain.Time, e Event) {
	k.last = max(k.last, at)
	if room := k.owners[e.Kind()]; room != nil {
		room.Apply(at, e)
		return
	}
	switch e := e.(type) {
	case *Ticked:
	case *Forgotten:
		k.forget(int(e.Count))
		k.Touch()
	case *LevelRaised:
		k.level = max(k.level, uint(e.Level))
		k.Touch()
	default:
		panic(fmt.Sprintf("no room applies %T", e))
	}
}

// begin sets the journal entry of the following transactions.
func (k *Kernel) begin(number uint64) {
	if k.number != number {
		k.number, k.part = number, 0
	}
}

// Touch returns the number that a changed record stores in Changed.
func (k *Kernel) Touch() uint64 {
	k.changed = k.number
	return k.number
}

// Number returns the number of the journal entry that is being built or replayed.
func (k *Kernel) Number() uint64 { return k.number }

// Part returns the number of the transaction in that entry, from 1.
func (k *Kernel) Part() uint32 { return k.part }

// Last returns the time of the last transaction; zero if there was none.
func (k *Kernel) Last() domain.Time { return k.last }

// Forgotten counts the game sessions, placements and tickets that left memory for the archive. The result of an archive look-up is valid
// only while the count stays the same.
func (k *Kernel) Forgotten() uint64 { return k.forgotten }

// ContactTime converts an instant to the clock that stands still while the service is down.
func (k *Kernel) ContactTime(t domain.Time) domain.ContactTime {
	return domain.ContactTime(t - k.downtime)
}

// WallTime is the inverse of ContactTime.
func (k *Kernel) WallTime(t domain.ContactTime) domain.Time { return domain.Time(t) + k.downtime }

// AddDowntime moves the contact clock by a downtime of the service.
func (k *Kernel) AddDowntime(d domain.Time) { k.downtime += d }
