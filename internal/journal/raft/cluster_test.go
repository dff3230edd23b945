package raft

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/waittest"
)

// cluster is a few nodes in this process, with a network in memory and a disk for each.
type cluster struct {
	t     testing.TB
	open  func(id string) Options // without Transport
	log   *slog.Logger
	nodes map[string]*Node
	links map[string]*raft.InmemTransport
	tick  time.Duration
	sent  func(*raft.AppendEntriesRequest)                          // nil, or called with each request of a leader
	hangs chan struct{}                                             // nil, or hand-overs hang until it is closed
	fails *atomic.Bool                                              // nil, or hand-overs fail while it is true
	slow  func(leader string)                                       // nil, or called with each answer to a heartbeat before the leader gets it
	loses func(to raft.ServerID, r *raft.AppendEntriesRequest) bool // nil, or reports whether the answer to a request is lost
}

// wire is a transport that opens no pipelines, as Options.Transport requires.
type wire struct{ *raft.InmemTransport }

func (wire) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// lossy is a transport on which answers may be lost.
type lossy struct {
	wire
	loses func(to raft.ServerID, r *raft.AppendEntriesRequest) bool
}

func (l lossy) AppendEntries(id raft.ServerID, at raft.ServerAddress, request *raft.AppendEntriesRequest, answer *raft.AppendEntriesResponse) error {
	time.Sleep(time.Millisecond) // or time would stand still while a leader repeats itself
	err := l.wire.AppendEntries(id, at, request, answer)
	if err == nil && l.loses(id, request) {
		return errors.New("the answer is lost")
	}
	return err
}

// observed is a transport whose append requests are observed.
type observed struct {
	wire
	sent func(*raft.AppendEntriesRequest)
}

func (o observed) AppendEntries(id raft.ServerID, at raft.ServerAddress, request *raft.AppendEntriesRequest, answer *raft.AppendEntriesResponse) error {
	o.sent(request)
	return o.wire.AppendEntries(id, at, request, answer)
}

// slow is a transport whose answers to heartbeats may be delayed.
type slow struct {
	wire
	answered func()
}

func (s slow) AppendEntries(id raft.ServerID, at raft.ServerAddress, request *raft.AppendEntriesRequest, answer *raft.AppendEntriesResponse) error {
	err := s.wire.AppendEntries(id, at, request, answer)
	if request.LeaderCommitIndex == 0 {
		s.answered()
	}
	return err
}

// hanging is a transport on which hand-overs hang until its channel is closed: no node is told to stand for election.
type hanging struct {
	wire
	until chan struct{}
}

func (h hanging) TimeoutNow(id raft.ServerID, at raft.ServerAddress, request *raft.TimeoutNowRequest, answer *raft.TimeoutNowResponse) error {
	<-h.until
	return h.wire.TimeoutNow(id, at, request, answer)
}

// failing is a transport on which hand-overs may fail.
type failing struct {
	wire
	fails *atomic.Bool
}

func (f failing) TimeoutNow(id raft.ServerID, at raft.ServerAddress, request *raft.TimeoutNowRequest, answer *raft.TimeoutNowResponse) error {
	if f.fails.Load() {
		return errors.New("the request is lost")
	}
	return f.wire.TimeoutNow(id, at, request, answer)
}

func newCluster(t testing.TB, open func(id string) Options) *cluster {
	c := &cluster{t: t, open: open, nodes: map[string]*Node{}, links: map[string]*raft.InmemTransport{}, tick: 500 * time.Millisecond}
	if os.Getenv("RAFT_LOG") != "" {
		c.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return c
}

// start opens a node and connects it to the others.
func (c *cluster) start(id string, bootstrap bool) (*Node, error) {
	address, link := raft.NewInmemTransportWithTimeout(raft.ServerAddress("at-"+id), c.tick)
	for other, its := range c.links {
		if c.nodes[other] != nil {
			link.Connect(its.LocalAddr(), its)
			its.Connect(address, link)
		}
	}
	o := c.open(id)
	o.ID, o.Transport, o.Bootstrap = id, wire{link}, bootstrap
	if c.sent != nil {
		o.Transport = observed{wire{link}, c.sent}
	}
	if c.hangs != nil {
		o.Transport = hanging{wire{link}, c.hangs}
	}
	if c.fails != nil {
		o.Transport = failing{wire{link}, c.fails}
	}
	if c.slow != nil {
		o.Transport = slow{wire{link}, func() { c.slow(id) }}
	}
	if c.loses != nil {
		o.Transport = lossy{wire{link}, c.loses}
	}
	if o.ElectionTimeout == 0 {
		o.ElectionTimeout = c.tick
	}
	if c.log != nil {
		o.Logger = c.log.With("node", id)
	}
	n, err := Open(o)
	if err != nil {
		_ = link.Close()
		return nil, err
	}
	c.nodes[id], c.links[id] = n, link
	return n, nil
}

// stop closes a node.
func (c *cluster) stop(id string) error {
	n := c.nodes[id]
	delete(c.nodes, id)
	err := n.Close()
	_ = c.links[id].Close()
	for other := range c.nodes {
		c.links[other].Disconnect(c.links[id].LocalAddr())
	}
	return err
}

func (c *cluster) stopAll() error {
	var errs []error
	for id := range c.nodes {
		errs = append(errs, c.stop(id))
	}
	return errors.Join(errs...)
}

// cut separates two nodes, join connects them again.
func (c *cluster) cut(a, b string) {
	c.links[a].Disconnect(c.links[b].LocalAddr())
	c.links[b].Disconnect(c.links[a].LocalAddr())
}

func (c *cluster) join(a, b string) {
	c.links[a].Connect(c.links[b].LocalAddr(), c.links[b])
	c.links[b].Connect(c.links[a].LocalAddr(), c.links[a])
}

// isolate cuts a node off from all others.
func (c *cluster) isolate(id string) {
	for other := range c.nodes {
		if other != id {
			c.cut(id, other)
		}
	}
}

func (c *cluster) heal() {
	for a := range c.nodes {
		for b := range c.nodes {
			if a < b {
				c.join(a, b)
			}
		}
	}
}

// lead returns the journal of the first node that becomes leader.
func (c *cluster) lead(ctx context.Context) (*Journal, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	type answer struct {
		j   *Journal
		err error
	}
	answers := make(chan answer, len(c.nodes))
	for _, n := range c.nodes {
		go func() {
			j, err := n.Lead(ctx)
			answers <- answer{j, err}
		}()
	}
	first := answer{err: errors.New("no node leads")}
	for range len(c.nodes) {
		a := <-answers
		if a.err == nil {
			if first.j == nil {
				first = a
			}
			cancel()
		} else if first.j == nil {
			first = a
		}
	}
	return first.j, first.err
}

// grow makes a cluster of the nodes.
func (c *cluster) grow(ids ...string) error {
	n, err := c.start(ids[0], true)
	if err != nil {
		return err
	}
	for _, id := range ids[1:] {
		if _, err := c.start(id, false); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := n.Lead(ctx); err != nil {
		return err
	}
	for _, id := range ids[1:] {
		if err := n.AddObserver(ctx, id, "at-"+id); err != nil {
			return err
		}
		if err := n.Promote(ctx, id); err != nil {
			return err
		}
	}
	for _, id := range ids { // a voter that does not know another one refuses it its vote
		waittest.Until(c.t, id+" knows all voters", func() bool { return c.nodes[id].voters() == len(ids) })
	}
	return nil
}

func batch(n uint64) []byte { return fmt.Appendf(nil, "entry %d", n) }

func mustAppend(t testing.TB, j journal.Journal, from, to uint64) {
	t.Helper()
	for n := from; n <= to; n++ {
		if err := j.Append(t.Context(), n, batch(n)); err != nil {
			t.Fatal(err)
		}
	}
}

// wantEntries checks that a node knows the entries first to last, and that reading from `from` gives exactly these.
func wantEntries(t testing.TB, n *Node, from, first, last uint64) {
	t.Helper()
	waittest.Until(t, fmt.Sprintf("node %s has entry %d", n.options.ID, last), func() bool { return n.Last() >= last })
	next := first
	for entry, err := range n.Read(t.Context(), from) {
		if err != nil {
			t.Fatalf("node %s: %v", n.options.ID, err)
		}
		if entry.Number != next || string(entry.Batch) != string(batch(next)) {
			t.Fatalf("node %s: got entry %d with %q, want %d", n.options.ID, entry.Number, entry.Batch, next)
		}
		next++
	}
	if next != last+1 {
		t.Fatalf("node %s: entries end before %d, want up to %d", n.options.ID, next, last)
	}
}

func (c *cluster) quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
