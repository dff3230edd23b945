package link

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/cluster/trust"
	journalraft "github.com/musterhq/muster/internal/journal/raft"
	"github.com/musterhq/muster/internal/waittest"
)

// raftNode is a node of a journal on a real port.
type raftNode struct {
	*journalraft.Node
	link *Link
}

func lead(t *testing.T, nodes ...*raftNode) (*raftNode, *journalraft.Journal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	type answer struct {
		n   *raftNode
		j   *journalraft.Journal
		err error
	}
	answers := make(chan answer, len(nodes))
	for _, n := range nodes {
		go func() {
			j, err := n.Lead(ctx)
			answers <- answer{n, j, err}
		}()
	}
	var first answer
	for range nodes {
		if a := <-answers; a.err == nil && first.j == nil {
			first = a
			cancel()
		}
	}
	if first.j == nil {
		t.Fatal("no node leads")
	}
	return first.n, first.j
}

// Three nodes elect a leader over TLS, commit, lose the leader's port, and continue.
func TestRaft(t *testing.T) {
	a := newAuthority(t, cluster)
	ids := []trust.NodeID{"n1", "n2", "n3"}
	links, at := map[trust.NodeID]*Link{}, map[string]trust.NodeID{}
	nodeAt := func(address string) trust.NodeID { return at[address] } // complete before Raft starts
	for _, id := range ids {
		links[id] = open(t, newIdentity(t, a, id, 0), func(o *Options) { o.NodeAt = nodeAt })
		at[links[id].Advertised()] = id
	}
	var nodes []*raftNode
	for i, id := range ids {
		transport, err := links[id].Transport()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := links[id].Transport(); err == nil {
			t.Error("a second transport was opened")
		}
		n, err := journalraft.Open(journalraft.Options{Dir: "data", FS: vfs.NewMem(), ID: string(id), Transport: transport, Bootstrap: i == 0, Logger: links[id].log})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
		nodes = append(nodes, &raftNode{n, links[id]})
	}
	first, j := lead(t, nodes[0])
	for _, n := range nodes[1:] {
		id := string(n.link.options.Identity.Node())
		if err := first.AddObserver(t.Context(), id, n.link.Advertised()); err != nil {
			t.Fatal(err)
		}
		if err := first.Promote(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	votesEverywhere := func(n *raftNode) bool {
		votes := 0
		for _, m := range n.Status().Members {
			if m.Votes {
				votes++
			}
		}
		return votes == 3
	}
	for _, n := range nodes { // a voter that does not know another one refuses it its vote
		waittest.Until(t, "all know three voters", func() bool { return votesEverywhere(n) })
	}
	const half = 50
	for n := uint64(1); n <= half; n++ {
		if err := j.Append(t.Context(), n, fmt.Appendf(nil, "entry %d", n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.link.Close(); err != nil {
		t.Fatal(err)
	}
	_, j = lead(t, nodes[1], nodes[2])
	for n := uint64(half + 1); n <= 2*half; n++ {
		if err := j.Append(t.Context(), n, fmt.Appendf(nil, "entry %d", n)); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range nodes[1:] {
		waittest.Until(t, "the entries are at both nodes", func() bool { return n.Last() == 2*half })
		next := uint64(1)
		for entry, err := range n.Read(t.Context(), 1) {
			if err != nil || entry.Number != next || string(entry.Batch) != fmt.Sprintf("entry %d", next) {
				t.Fatalf("got entry %d, %q, %v; want %d", entry.Number, entry.Batch, err, next)
			}
			next++
		}
		if next != 2*half+1 {
			t.Errorf("%d entries, want %d", next-1, 2*half)
		}
	}
}

// Pipelines of entries stay off: see raftInFlight.
func TestNoPipelines(t *testing.T) {
	a := newAuthority(t, cluster)
	n1, n2 := open(t, newIdentity(t, a, "n1", 0), nil), open(t, newIdentity(t, a, "n2", 0), nil)
	transport, err := n1.Transport()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = transport.(raft.WithClose).Close() }()
	if _, err := transport.AppendEntriesPipeline("n2", raft.ServerAddress(n2.Advertised())); !errors.Is(err, raft.ErrPipelineReplicationNotSupported) {
		t.Errorf("a pipeline was opened: %v", err)
	}
}

// A node that opens its journal again opens its transport again, over the same port.
func TestTransportIsOpenedAgain(t *testing.T) {
	a := newAuthority(t, cluster)
	l := open(t, newIdentity(t, a, "n1", 0), nil)
	n2 := open(t, newIdentity(t, a, "n2", 0), nil)
	files := vfs.NewMem()
	for i := range 3 {
		transport, err := l.Transport()
		if err != nil {
			t.Fatal(err)
		}
		n, err := journalraft.Open(journalraft.Options{Dir: "data", FS: files, ID: "n1", Transport: transport, Bootstrap: true})
		if err != nil {
			t.Fatal(err)
		}
		_, j := lead(t, &raftNode{n, l})
		if err := j.Append(t.Context(), uint64(i+1), []byte("x")); err != nil {
			t.Fatal(err)
		}
		c, err := n2.Dial(t.Context(), l.Advertised(), "n1", Raft)
		if err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "Raft has the connection", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.conns) == 1 })
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		wantEnd(t, "a connection of the transport that was closed", c)
		_ = c.Close()
	}
	c, err := n2.Dial(t.Context(), l.Advertised(), "n1", Raft)
	if err == nil { // without a transport
		wantEnd(t, "a connection without a transport", c)
		_ = c.Close()
	}
}
