package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/membership"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// cluster is the world's knowledge of the nodes that accept connections. In some seeds the service is a cluster between some restarts and a single machine
// between others, as after `--cluster-listen` and `muster cluster leave`. It draws from its own random source, so that the runs of other seeds stay
// the same.
type cluster struct {
	chance  *rand.Rand
	at      bool // this seed has a cluster
	running bool // the service is a cluster at present
	ever    []domain.UUID
}

func newCluster(seed uint64) cluster {
	c := cluster{chance: rand.New(rand.NewPCG(seed, 0xc1))}
	c.at = c.chance.IntN(100) < 45
	return c
}

func (c *cluster) oneIn(n int) bool { return c.chance.IntN(n) == 0 }

// atNode makes a node of the cluster send a command that attaches a connection: a present node, or sometimes one that was given up. It replaces
// some commands with the start or the loss of a node.
func (c *cluster) atNode(v *cell.View, cmd kernel.Command) kernel.Command {
	if !c.running {
		return cmd
	}
	nodes := v.Nodes()
	switch {
	case len(nodes) == 0 && !c.oneIn(4), c.oneIn(90):
		var id domain.UUID
		for i := range id {
			id[i] = byte(c.chance.Uint32())
		}
		c.ever = append(c.ever, id)
		return &membership.BeginNode{Node: id, Name: fmt.Sprint("n", 1+c.chance.IntN(3))}
	case len(c.ever) > 0 && c.oneIn(120):
		return &membership.LoseNode{Node: c.ever[max(0, len(c.ever)-1-c.chance.IntN(4))]}
	}
	node := domain.UUID{0xee} // never registered
	switch {
	case len(nodes) > 0 && !c.oneIn(15):
		node = nodes[c.chance.IntN(len(nodes))].ID
	case len(c.ever) > 0:
		node = c.ever[c.chance.IntN(len(c.ever))]
	}
	switch cmd := cmd.(type) {
	case *hosting.ConnectProcess:
		cmd.Node = node
	case *hosting.ActivateProcess:
		cmd.Node = node
	case *playerflow.AttachStream:
		cmd.Node = node
	case *playerflow.PollEvents:
		cmd.Node = node
	case *playerflow.AwaitPlayers:
		cmd.Node = node
	}
	return cmd
}

// held are the connections that count as open: the links of processes, and the streams of players, which are 0 for players who poll.
type held struct {
	links   map[fleet.Key]uint64
	streams map[string]uint64
}

// held returns the connections, and checks that each is at a node that is present, or, of a single machine, at none.
func (w *World) held(v *cell.View) held {
	h := held{map[fleet.Key]uint64{}, map[string]uint64{}}
	present := map[uint32]bool{}
	for _, n := range v.Nodes() {
		present[n.No] = true
	}
	check := func(who string, node uint32) {
		if w.cluster.running != present[node] {
			w.violated("%s counts as connected to node %d; a cluster %t, present %v", who, node, w.cluster.running, present)
		}
	}
	for _, p := range everyProcess(v) {
		if p.Linked {
			check(p.Key.String(), p.Node)
			h.links[p.Key] = p.Link
		}
	}
	if w.cell.PlayerFlow.Flow != nil {
		for i := range playersMax {
			if s, ok := v.FlowOf(playerNamed(i), w.time()); ok && s.Presence == flow.Online {
				check(s.Player, s.Node)
				h.streams[s.Player] = s.Stream
			}
		}
	}
	return h
}

// checkTakeover checks the effect of a run's first command on existing connections: in a cluster, those at nodes stay; otherwise none does.
func (w *World) checkTakeover(was bool, before held) {
	v := w.node.seq.Cell().View()
	after := w.held(&v)
	switch {
	case !w.cluster.running || !was: // all are lost
		if len(after.links)+len(after.streams) > 0 {
			w.violated("a restart leaves the connections %v", after)
		}
		if len(v.Nodes()) > 0 && !w.cluster.running {
			w.violated("a single machine has the nodes %v", v.Nodes())
		}
	case !maps.Equal(before.links, after.links) || !maps.Equal(before.streams, after.streams):
		w.violated("a takeover makes %v of the connections %v", after, before)
	case len(before.links) > 0 && len(before.streams) > 0:
		w.saw("links and streams outlive a takeover")
	}
}

// sawNodes notes what happens to nodes.
func (w *World) sawNodes(cmd kernel.Command, err error) {
	refusal, _ := err.(*domain.Refusal)
	switch cmd.(type) {
	case *membership.LoseNode:
		w.saw("a node is lost")
	case *membership.BeginNode:
		w.saw("a node begins")
	default:
		if refusal != nil && refusal.Reason == domain.NodeLost {
			w.saw("a node that was given up attaches nothing")
		}
	}
}
