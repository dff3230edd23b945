// Package hosting is the room of fleets, computes, server processes, game sessions, player sessions and placements, with
// aliases, their rollouts, builds and queues. It does not import matchmaking or player flow, which take part through Hooks; without hooks, the cost
// is a nil check.
//
// A command's Decide checks it and emits events. The order of checks is part of the API. Apply folds events into the state.
// Files: command_*.go has the commands of a noun, events_gen.go the events, apply*.go what the events do, view*.go what callers may read.
package hosting

import (
	"github.com/musterhq/muster/internal/domain"
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

	eventNo     uint64          // number of the latest fleet event
	placementNo uint64          // number of the latest placement
	restoring   session.GameRef // the last game session read while a snapshot is loaded
	hooks       Hooks           // nil: no other room takes part
	nodes       Nodes
	moving      []string // aliases whose rollouts are moving or returning, in order
}

// Tx is the room: its state and its part of the current transaction.
type Tx struct {
	*kernel.Tx
	*State
	notices Notices
	dirty   []placement.Ref // placements that Settle must try before the transaction ends
}

// Notices records notices for webhook receivers.
type Notices interface {
	// Tell records a notice for the bus and for a topic, if either has a receiver.
	Tell(n notice.Notice, topic string)
}

// Nodes are the nodes of a cluster that have connections.
type Nodes interface {
	// Holder returns the number of the node that is about to attach a connection; 0 for a single node, whose id is zero. It refuses a node that is
	// not a member or was given up.
	Holder(id domain.UUID) (no uint32, err error)
	// Present reports whether the node with a number still has its connections; false for 0.
	Present(no uint32) bool
}

// New returns an empty room.
func New(k *kernel.Kernel, config *Config, notices Notices, nodes Nodes) *Tx {
	s := &State{Kernel: k, Config: config, nodes: nodes, Fleets: fleet.New(), Sessions: session.New(), Placements: placement.New()}
	return &Tx{Tx: k.Tx(), State: s, notices: notices}
}

func (c *State) fleet(r fleet.Ref) *fleet.Fleet { return c.Fleets.Fleets.Get(r) }

func (c *State) compute(r fleet.ComputeRef) *fleet.Compute { return c.Fleets.Computes.Get(r) }

// Connect sets the hooks. It is called once, before the first command.
func (t *Tx) Connect(h Hooks) { t.hooks = h }

// Events returns the constructors of the room's events.
func (*Tx) Events() []func() kernel.Event { return events }

// View reads the room's state. It returns copies, whose slices must not be changed.
type View struct {
	kernel.Reader
	c *State
}

// View returns a View. It is valid until the next command is executed.
func (c *State) View() View { return View{c.Reader(), c} }
