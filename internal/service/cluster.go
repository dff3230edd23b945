package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/cluster/exchange"
	"github.com/musterhq/muster/internal/cluster/link"
	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/cluster/requests"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/engine"
	journalraft "github.com/musterhq/muster/internal/journal/raft"
	"github.com/musterhq/muster/internal/operator"
)

// openNode opens the data directory of a cluster node. joins reports whether a join token was given, which may be empty: see node.Options.
func (x *Service) openNode(ctx context.Context, accept []datadir.Part, joins bool) (err error) {
	if len(accept) > 0 {
		return errors.New("accept-loss: a node that has lost a part of its data must no longer take part: remove it, and join with an empty directory")
	}
	s, files := x.settings, connlimit.ReserveOf(x.descriptors)
	x.node, err = node.Open(ctx, node.Options{
		Data: datadir.Options{
			Dir: s.Data, Program: "muster serve", Log: x.log, Key: x.key, JournalTables: files.JournalFiles, ArchiveTables: files.ArchiveFiles,
		},
		Listen: s.ClusterListen, Advertise: s.ClusterAdvertise, Join: s.Join, Joins: joins, Observer: s.Observer, Version: x.version, Connections: nodeConnections(x.descriptors),
		Marks:  x.reload.marks.Get,
		Panics: x.panics, Log: x.log,
	})
	if err != nil {
		return portError(err, "--cluster-listen")
	}
	x.secret, x.archive = x.node.Data().Secret, x.node.Data().Archive
	x.room = watchRoom(s.Data, uint64(s.DiskReserve), x.log, x.node.Journal(), x.archive)
	return nil
}

// nodeConnections returns how many connections of other nodes are accepted under a descriptor limit. The limits of clients count all of them as used.
func nodeConnections(descriptors int) int { return min(descriptors/8, link.ConnectionsMax) }

// openReplica loads this node's state. The node decides nothing before runNode.
func (x *Service) openReplica(ctx context.Context, c engine.Config) (err error) {
	c.Loaded, c.Peers, c.Levels, c.Archives = x.node.Data().CheckState, x.node.Peers(), x.node, x.node.Archives()
	if x.engine, err = engine.OpenReplica(ctx, c, x.node.Journal()); err != nil {
		return err
	}
	x.node.Attach(x.engine, x.publicURL)
	return nil
}

// incarnation returns the function from which doors learn the id under which this node takes connections; nil without a cluster.
func (x *Service) incarnation() func() domain.UUID {
	if x.node == nil {
		return nil
	}
	return x.node.Incarnation
}

// registered returns the function that tells doors whether the cluster counts this node as present; nil without a cluster.
func (x *Service) registered() func() bool {
	if x.node == nil {
		return nil
	}
	return x.node.Registered
}

// dropWhenGivenUp makes the doors drop their connections whenever the cluster considers this node gone.
func (x *Service) dropWhenGivenUp() {
	if x.node == nil {
		return
	}
	x.node.WhenGivenUp(x.link.DropLinks)
	x.node.WhenGivenUp(x.scripts.DropStreams)
	x.node.WhenGivenUp(x.agents.DropLinks)
	if x.players != nil {
		x.node.WhenGivenUp(x.players.DropStreams)
	}
}

// answerNodes makes this node answer the questions of other nodes and serve the requests that they forward.
func (x *Service) answerNodes(doors *router) {
	if x.node == nil {
		return
	}
	x.node.Requests().Handle(x.panics.Handler("nodes", &x.questions), doors)
}

// private reports whether no network on the way could read or change a request. For a forwarded request, the forwarding node says so.
func (x *Service) private(r *http.Request) bool {
	if private, ok := requests.Private(r); ok {
		return private
	}
	return x.transport.Private(r)
}

// askLeader returns the function with which the operators' door asks the leader; nil without a cluster.
func (x *Service) askLeader() func(ctx context.Context, question []byte) ([]byte, error) {
	if x.node == nil {
		return nil
	}
	return func(ctx context.Context, question []byte) ([]byte, error) {
		return x.node.Ask(ctx, exchange.Explain, question)
	}
}

// askLeaderForAttention returns the function with which the overview asks the leader; nil without a cluster.
func (x *Service) askLeaderForAttention() func(ctx context.Context) ([]byte, error) {
	if x.node == nil {
		return nil
	}
	return func(ctx context.Context) ([]byte, error) { return x.node.Ask(ctx, exchange.Attention, nil) }
}

// status returns the function from which the overview learns of the other nodes; nil without a cluster.
func (x *Service) status() func() node.Status {
	if x.node == nil {
		return nil
	}
	return x.node.Status
}

// Node returns this service's cluster node, or nil.
func (x *Service) Node() *node.Node { return x.node }

// Ready returns the reason why clients should use another node, or nil.
func (x *Service) Ready() error {
	err := x.Err()
	if err == nil && x.node != nil {
		err = x.node.Ready()
	}
	if err == nil && !x.secrets.Complete() {
		err = errors.New("this node does not yet have all generations of the secret that the other nodes have")
	}
	return err
}

// nodeErr returns the reason why a cluster node does not work, or nil.
func (x *Service) nodeErr() error {
	if x.node == nil {
		return nil
	}
	if err := x.node.Err(); err != nil {
		return fmt.Errorf("the node has failed: %w", err)
	}
	return nil
}

// NodeFailed returns once this cluster node has failed. The service must then end, so that its connections move to other nodes. again reports whether
// a restart repairs it. If ctx ends first, NodeFailed returns false, false.
func (x *Service) NodeFailed(ctx context.Context) (failed, again bool) {
	if x.node == nil {
		<-ctx.Done()
		return false, false
	}
	select {
	case <-x.node.Failed():
		return true, errors.Is(x.node.Err(), journalraft.ErrReopen)
	case <-x.engine.Stopped():
		return true, false
	case <-ctx.Done():
		return false, false
	}
}

// lookWait bounds how long an overview waits for the leader's view of the cluster.
const lookWait = 500 * time.Millisecond

// clusterMembers returns the function from which the overview gets the members of the cluster; nil without a cluster. They are as the leader sees
// them, or as this node does if no leader answers.
func (x *Service) clusterMembers() func(ctx context.Context) *operator.Cluster {
	if x.node == nil {
		return nil
	}
	return func(ctx context.Context) *operator.Cluster {
		ctx, cancel := context.WithTimeout(ctx, lookWait)
		defer cancel()
		s, err := x.node.Change(ctx, node.Change{Do: node.Look})
		if err != nil {
			s = x.node.Status()
		}
		c := &operator.Cluster{Leader: s.Leader, Outlook: s.Outlook, Members: []operator.Member{}}
		for _, m := range s.Members {
			c.Members = append(c.Members, operator.Member{ID: m.ID, Address: m.Address, Role: m.Role, Version: m.Version, Behind: m.Behind, Missing: m.Missing})
		}
		return c
	}
}
