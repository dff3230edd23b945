// Package requeststest connects requests.Nets to each other in tests, without TLS and certificates.
package requeststest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/cluster/requests"
)

// Cluster is a cluster of Nets. All methods may be called concurrently.
type Cluster struct {
	t *testing.T

	mu      sync.Mutex
	members []requests.Member
	nets    map[string]*requests.Net
	down    map[string]bool
	conns   map[*conn]struct{}
}

// New returns a cluster without nodes.
func New(t *testing.T) *Cluster {
	return &Cluster{t: t, nets: map[string]*requests.Net{}, down: map[string]bool{}, conns: map[*conn]struct{}{}}
}

// Join adds a voting node.
func (c *Cluster) Join(id string) *requests.Net {
	n := requests.New(requests.Config{Self: id, Members: c.list, Log: slog.New(slog.DiscardHandler), Dial: func(ctx context.Context, _, node string) (net.Conn, error) {
		return c.dial(ctx, id, node)
	}})
	c.t.Cleanup(n.Close)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nets[id] = n
	c.members = append(c.members, requests.Member{ID: id, Votes: true})
	return n
}

func (c *Cluster) list() []requests.Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]requests.Member(nil), c.members...)
}

// Cut closes the connections of a node and prevents new ones until Mend.
func (c *Cluster) Cut(id string) {
	c.mu.Lock()
	c.down[id] = true
	var ended []*conn
	for x := range c.conns {
		if x.from == id || x.to == id {
			ended = append(ended, x)
		}
	}
	c.mu.Unlock()
	for _, x := range ended {
		_ = x.Close()
	}
}

// Mend reverts Cut.
func (c *Cluster) Mend(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down[id] = false
}

var errCut = errors.New("the test has cut this connection")

func (c *Cluster) dial(ctx context.Context, from, to string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down[from] || c.down[to] || c.nets[to] == nil {
		return nil, errCut
	}
	near, far := net.Pipe()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	dialed, accepted := &conn{Conn: near, cluster: c, from: from, to: to}, &conn{Conn: far, cluster: c, from: from, to: to, cancel: cancel}
	c.conns[dialed], c.conns[accepted] = struct{}{}, struct{}{}
	server := c.nets[to]
	go server.Serve(ctx, accepted, "") // it ends with the connection
	return dialed, nil
}

// conn is one end of a connection.
type conn struct {
	net.Conn
	cluster  *Cluster
	from, to string
	cancel   context.CancelFunc // nil: of the end that was dialed
}

func (x *conn) Close() error {
	if x.cancel != nil {
		x.cancel()
	}
	x.cluster.mu.Lock()
	delete(x.cluster.conns, x)
	x.cluster.mu.Unlock()
	return x.Conn.Close()
}
