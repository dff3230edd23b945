package kernel

import (
	"fmt"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

// # Levels
//
// The kinds of events and snapshot parts have levels: the kinds of the first release have level 1, and a release that adds kinds gives them the next
// level. A program knows all kinds up to its own level (Level). The level in force, which is part of the state, is the highest level whose kinds may
// be written: in a cluster that runs releases N and N+1 together, it is the level of N. The engine raises it when the programs of all members know
// the next one. A program whose own level is below the level in force must not start, because it could not follow.
//
// Commands need no checks for this: the kernel refuses a command whose first event is above the level in force, and nothing has happened. A check of
// Tx.Level by the emitting code is needed in three cases: an event of a new kind follows others in its transaction, comes from a deadline or comes
// from Resume. It is also needed for a new field of an old event or record on which Apply depends, because an earlier release skips the field.

// Leveled is an event or a record of a kind that was introduced at a level above 1.
type Leveled interface {
	// Level returns the level; it is the same for all events or records of the type.
	Level() uint
}

// LevelOf returns the level of the kind of an event or a record.
func LevelOf(m wire.Message) uint {
	if l, ok := m.(Leveled); ok {
		return l.Level()
	}
	return 1
}

// LaterRelease is the error for data that a later release has written and this one cannot read.
type LaterRelease struct {
	What  string // what was written
	Level uint   // that is in force; 0: unknown
	Known uint   // to this program
}

func (e *LaterRelease) Error() string {
	what := e.What
	if e.Level != 0 {
		what = fmt.Sprintf("the data is at level %d", e.Level)
	}
	return what + fmt.Sprintf(", written by a later release; this one knows levels up to %d. Start the later release; to go back to this one, restore a backup from before the upgrade", e.Known)
}

// Level returns the level in force.
func (k *Kernel) Level() uint { return k.level }

// KnownLevel returns the highest level that this program knows.
func (k *Kernel) KnownLevel() uint { return k.known }

// Level returns the level in force: events and parts of snapshots above it must not be written.
func (t *Tx) Level() uint { return t.k.level }

// checkLevel returns an error if this program does not know a level that is in force in the data.
func (k *Kernel) checkLevel(level uint) error {
	if level > k.known {
		return &LaterRelease{Level: level, Known: k.known}
	}
	return nil
}

// early is the panic value that aborts a command whose first event is above the level in force. Nothing was applied, so nothing has changed.
type early struct{ refusal *domain.Refusal }

// tooEarly aborts a command that emits an event above the level in force.
func (t *Tx) tooEarly(e Event) {
	needs := uint(t.k.levels[e.Kind()])
	if t.open {
		panic(fmt.Sprintf("%T emits %T of level %d behind other events, at level %d: it has to check Tx.Level first", t.Cmd, e, needs, t.k.level))
	}
	panic(early{domain.Refuse(domain.Overloaded,
		"%s is possible as soon as all nodes of the cluster run this release: it needs level %d of the journal, and %d is in force", t.CommandName(), needs, t.k.level)})
}

// decideBelow is decide while the level in force is below the program's level.
func (t *Tx) decideBelow(cmd Command) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case early:
			err = p.refusal
			t.settle(err)
		default:
			panic(p)
		}
	}()
	return t.decide(cmd)
}

// RaiseLevel puts a level in force. Only the engine issues it, when all members of the cluster know the level.
type RaiseLevel struct{ To uint }

// Decide emits LevelRaised if the level is higher than the one in force.
func (cmd *RaiseLevel) Decide(t *Tx) error {
	switch {
	case cmd.To > t.k.known:
		return domain.Refuse(domain.Invalid, "level %d is unknown to this release, which knows levels up to %d", cmd.To, t.k.known)
	case cmd.To > t.k.level:
		t.Emit(&LevelRaised{uint32(cmd.To)})
	}
	return nil
}
