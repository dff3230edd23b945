// Package membership is the room that records which nodes of a cluster take connections. It does not record which of them vote; the journal does.
//
// # Incarnations
//
// A node registers under a random id before it opens its doors (BeginNode), and under a new id after each restart: an incarnation. For each
// connection of a game server and each presence of a player, the rooms record the number of the incarnation that holds it. LoseNode ends an
// incarnation when its node has been silent for too long or announces that it stops. From then on all of its connections are lost, and their peers
// have the same time to return as after a restart of a single node. A command that attaches a connection to an ended incarnation is refused with
// domain.NodeLost, so a node that was given up without knowing it cannot make a connection count as alive.
//
// Numbers and ids are never reused: a node that was given up takes new ones.
//
// A change of leader does not affect incarnations (kernel.Resume). When the service runs as a single node again, they end.
package membership

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Room is the room's number.
const Room kernel.RoomNo = 6

// Node is an incarnation of a node that takes connections.
type Node struct {
	No    uint32 // number among all incarnations, from 1
	ID    domain.UUID
	Name  string
	Began domain.Time

	Changed uint64
}

// Fields of a Node.
func (n *Node) Fields(c *wire.Codec) {
	wire.Int(c, 1, &n.No)
	c.UUID(2, &n.ID)
	c.String(3, &n.Name)
	wire.Int(c, 4, &n.Began)
}

// Hooks are the rooms that hold connections.
type Hooks interface {
	// Graces returns until when game servers and players whose connections are lost now may return.
	Graces(now domain.ContactTime) (links, players domain.ContactTime)
	// Links returns how many game servers are connected to a node.
	Links(node uint32) uint32
	// NodeLost counts the connections of a node as lost. It runs while the event is applied, when the node is no longer present.
	NodeLost(e *NodeLost)
}

// State is the room's records. There are only as many as the cluster has nodes, so a snapshot copies them.
type State struct {
	*kernel.Kernel
	nodes []Node // present ones, ordered by number; never changed in place
	last  uint32 // latest assigned number
	hooks Hooks
}

// Tx is the room: its state and its part of the current transaction.
type Tx struct {
	*kernel.Tx
	*State
	kernel.Plain
}

// New returns an empty room.
func New(k *kernel.Kernel) *Tx { return &Tx{Tx: k.Tx(), State: &State{Kernel: k}} }

// Connect sets the hooks. It is called once, before the first command.
func (c *State) Connect(h Hooks) { c.hooks = h }

// Events returns the constructors of the room's events.
func (*Tx) Events() []func() kernel.Event { return events }

// Present reports whether the node with a number takes connections. No node has number 0.
func (c *State) Present(no uint32) bool {
	return slices.ContainsFunc(c.nodes, func(n Node) bool { return n.No == no })
}

// Holder returns the number of the node that is about to attach a connection; 0 for a single node, whose id is zero.
func (c *State) Holder(id domain.UUID) (no uint32, err error) {
	if id.IsZero() {
		return 0, nil
	}
	for i := range c.nodes {
		if c.nodes[i].ID == id {
			return c.nodes[i].No, nil
		}
	}
	return 0, domain.Refuse(domain.NodeLost, "the node that has this connection is not registered with the cluster, or was given up")
}

func (c *State) Apply(_ domain.Time, event kernel.Event) {
	switch e := event.(type) {
	case *NodeBegan:
		n := e.Node
		n.Changed = c.Touch()
		c.nodes, c.last = append(slices.Clone(c.nodes), n), n.No
	case *NodeLost:
		c.Touch()
		c.nodes = slices.DeleteFunc(slices.Clone(c.nodes), func(n Node) bool { return n.No == e.Node })
		c.hooks.NodeLost(e)
	}
}

// View reads the room's state.
type View struct {
	kernel.Reader
	c *State
}

// View returns a View. It is valid until the next command is executed.
func (c *State) View() View { return View{c.Reader(), c} }

// Nodes returns the nodes that take connections.
func (v *View) Nodes() []Node {
	v.SawAll()
	return slices.Clone(v.c.nodes)
}

// partNode is a field number of message SnapshotPart in proto/journal.proto.
const partNode = 75

// Freeze returns the room's part of a snapshot.
func (c *State) Freeze(h *kernel.Head) []kernel.Frozen {
	h.NodeNo = c.last
	nodes := c.nodes
	return []kernel.Frozen{func(w *kernel.PartWriter) {
		for _, n := range nodes {
			w.Part(partNode, &n)
		}
	}}
}

func (c *State) Load(l *kernel.Loader, kind uint64, body []byte) (known bool, err error) {
	if kind != partNode {
		return false, nil
	}
	return true, kernel.LoadWith(l, body, func(n Node) { c.nodes = append(c.nodes, n) })
}

// Restore takes over the values in the head of a snapshot.
func (c *State) Restore(h *kernel.Head) error {
	c.last = h.NodeNo
	return nil
}
