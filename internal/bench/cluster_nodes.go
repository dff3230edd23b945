package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/localdoor"
)

// clusterNode is a node in its own process.
type clusterNode struct {
	*server
	id        string // as a member
	peers     string // its address for other nodes
	data      string
	arguments []string // of its next start, with the same addresses
}

// nodes is a cluster of such nodes.
type nodes struct {
	bench *bench
	all   []*clusterNode
}

// found begins a cluster with the data directory, with further arguments for each node.
func (b *bench) found(ctx context.Context, data string, arguments ...string) (*nodes, error) {
	c := &nodes{bench: b}
	return c, c.add(ctx, data, arguments)
}

// foundThree begins an empty cluster of three nodes.
func (b *bench) foundThree(ctx context.Context, arguments ...string) (*nodes, error) {
	dir, err := b.freshDir("cluster")
	if err != nil {
		return nil, err
	}
	c, err := b.found(ctx, dir, arguments...)
	for err == nil && len(c.all) < 3 {
		err = c.join(ctx, arguments...)
	}
	if err == nil {
		err = c.whole(ctx)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// join starts an empty node that joins. It returns when the node accepts requests.
func (c *nodes) join(ctx context.Context, arguments ...string) error {
	door, err := c.all[0].door()
	if err != nil {
		return err
	}
	token, err := door.JoinToken(ctx)
	if err != nil {
		return err
	}
	dir, err := c.bench.freshDir("cluster")
	if err != nil {
		return err
	}
	c.bench.keys[dir] = c.all[0].key // the key will be the cluster's
	return c.add(ctx, dir, append([]string{"--join", token}, arguments...))
}

func (c *nodes) add(ctx context.Context, data string, arguments []string) error {
	peers, err := freePort()
	if err != nil {
		return err
	}
	n := &clusterNode{data: data, peers: peers, arguments: append([]string{"serve", "--cluster-listen", peers}, arguments...)}
	if err := n.start(ctx, c.bench); err != nil {
		return err
	}
	c.all = append(c.all, n)
	return nil
}

// freePort returns a loopback address with a port that was free a moment ago.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (n *clusterNode) start(ctx context.Context, b *bench) (err error) {
	if n.server, err = b.start(ctx, "a node", n.data, slices.Clone(n.arguments)...); err != nil {
		return err
	}
	if !slices.Contains(n.arguments, "--cluster-listen") {
		return nil
	}
	door, err := n.door()
	if err != nil {
		return err
	}
	s, err := door.ClusterStatus(ctx)
	for _, m := range s.Members {
		if m.Address == n.peers {
			n.id = m.ID
		}
	}
	return err
}

func (n *clusterNode) door() (*localdoor.Client, error) {
	return localdoor.NewClient(n.data, nil, "muster bench")
}

// status returns the cluster's status from this node or the leader.
func (n *clusterNode) status(ctx context.Context) (s node.Status, err error) {
	door, err := n.door()
	if err != nil {
		return s, err
	}
	return door.ClusterStatus(ctx)
}

// until waits for a state of the cluster in the leader's view.
func (c *nodes) until(ctx context.Context, what string, is func(node.Status) bool) (s node.Status, err error) {
	for end := time.Now().Add(patience); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		for _, n := range c.all {
			if n.server == nil {
				continue
			}
			if s, err = n.status(ctx); err == nil && is(s) {
				return s, nil
			}
		}
	}
	return s, errors.Join(err, ctx.Err(), fmt.Errorf("timed out waiting until %s; the cluster is %+v", what, s))
}

// caughtUp is how many entries a node may lag during writes: it learns that the last ones are committed with the next.
const caughtUp = 1000

// whole waits until all nodes vote, are present, and have caught up with the leader.
func (c *nodes) whole(ctx context.Context) error {
	_, err := c.until(ctx, "all nodes vote and have caught up", func(s node.Status) bool {
		return s.Leader != "" && len(s.Members) == len(c.all) && !slices.ContainsFunc(s.Members, func(m node.Member) bool {
			return m.Role == "observer" || m.Missing || m.URL == "" || m.Behind > caughtUp
		})
	})
	return err
}

// roles returns the leader and the other nodes.
func (c *nodes) roles(ctx context.Context) (leader *clusterNode, others []*clusterNode, err error) {
	s, err := c.until(ctx, "a node leads", func(s node.Status) bool { return s.Leader != "" })
	if err != nil {
		return nil, nil, err
	}
	for _, n := range c.all {
		if n.id == s.Leader {
			leader = n
		} else {
			others = append(others, n)
		}
	}
	if leader == nil {
		return nil, nil, fmt.Errorf("the leader %s is not one of these nodes", s.Leader)
	}
	return leader, others, nil
}

// kill kills a node, which keeps its address for a later start.
func (n *clusterNode) kill() {
	addr := n.addr
	n.server.kill()
	n.server = nil
	if !slices.Contains(n.arguments, "--listen") {
		n.arguments = append(n.arguments, "--listen", addr)
	}
}

// close kills all nodes.
func (c *nodes) close() {
	for _, n := range c.all {
		if n.server != nil {
			n.kill()
		}
	}
}

// repeats returns how often leaders are killed and hand over.
func (b *bench) repeats() int { return cmp.Or(b.options.Repeats, b.sizes.clusterRepeats) }
