package membership

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// BeginNode registers an incarnation of a node before it takes connections. If an earlier incarnation of the node is still present, it is
// lost.
type BeginNode struct {
	Node domain.UUID // random, never used before
	Name string
}

// nameMax bounds the name of a node.
const nameMax = 64

// Decide emits NodeBegan, unless the incarnation is already present.
func (cmd *BeginNode) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if cmd.Node.IsZero() || cmd.Name == "" || len(cmd.Name) > nameMax {
		return domain.Refuse(domain.Invalid, "node %s named %.100q: want an id, and a name of 1 to %d bytes", cmd.Node, cmd.Name, nameMax)
	}
	if i := slices.IndexFunc(t.nodes, func(n Node) bool { return n.ID == cmd.Node }); i >= 0 {
		return nil
	}
	if i := slices.IndexFunc(t.nodes, func(n Node) bool { return n.Name == cmd.Name }); i >= 0 {
		t.lose(t.nodes[i].No, t.Contact)
	}
	t.Emit(&NodeBegan{Node{No: t.last + 1, ID: cmd.Node, Name: cmd.Name, Began: t.Now}})
	return nil
}

// LoseNode ends an incarnation whose node is silent or has announced that it stops. Only the leader issues it.
type LoseNode struct{ Node domain.UUID }

// Decide emits NodeLost, unless the incarnation has already ended.
func (cmd *LoseNode) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if no, err := t.Holder(cmd.Node); err == nil && no != 0 {
		t.lose(no, t.Contact)
	}
	return nil
}

func (t *Tx) lose(no uint32, now domain.ContactTime) {
	links, players := t.hooks.Graces(now)
	t.Emit(&NodeLost{Node: no, LostBy: links, PresenceBy: players, Now: now, Links: t.hooks.Links(no)})
}

// Resume ends all incarnations when the service starts as a single node: they belong to its former cluster.
func (t *Tx) Resume(r kernel.Resumption) {
	if r.Cluster || r.Paused {
		return
	}
	for _, n := range t.nodes {
		t.lose(n.No, r.Then)
	}
}
