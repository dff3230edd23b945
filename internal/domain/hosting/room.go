// Package hosting is the room of fleets, computes, server processes, game sessions, player sessions and placements, with
// aliases, builds and queues. It knows nothing of matchmaking and of player flow: it calls Hooks where they have a say or a
// part, and pays for a nil check where there are none.
//
// A command's Decide checks it and emits events. The order of checks is part of the API. Apply folds events into the state.
// Files are named for what they hold: command_*.go has the commands of a noun, event_*.go its events, apply*.go what the
// events do, view*.go what callers may read.
package hosting

import (
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// State is the room's records and limits.
type State struct {
	*kernel.Kernel
	Config     *Config
	Fleets     *fleet.State
	Sessions   *session.State
	Placements *placement.State

	eventNo     uint64      // fleet events ever written
	placementNo uint64      // placements ever started
	restoring   session.Ref // the latest game session while a snapshot is read
	hooks       Hooks       // nil: hosting is alone
}

// Tx is the room: its state, and its part of the transaction that is being decided.
type Tx struct {
	*kernel.Tx
	*State
	notices Notices
	dirty   []placement.Ref // placements that have to look for a place before the transaction ends
}

// Notices writes down who is to be told of what.
type Notices interface {
	// Tell writes a notice down for the bus and for a topic, as far as any receiver takes them.
	Tell(n notice.Notice, topic string)
}

// New returns the room without records.
func New(k *kernel.Kernel, config *Config, notices Notices) *Tx {
	s := &State{Kernel: k, Config: config, Fleets: fleet.New(), Sessions: session.New(), Placements: placement.New()}
	return &Tx{Tx: k.Tx(), State: s, notices: notices}
}

// Connect tells the room who takes part in what happens here. It is called once, before the first command.
func (t *Tx) Connect(h Hooks) { t.hooks = h }

// Events has the constructors of the room's events.
func (*Tx) Events() []func() kernel.Event { return events }

// View reads the room's state. What it returns are copies, whose slices must not be changed.
type View struct {
	kernel.Reader
	c *State
}

// View returns a View. It is good as long as no command is executed.
func (c *State) View() View { return View{c.Reader(), c} }
