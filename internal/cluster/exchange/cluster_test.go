package exchange_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	archivepebble "github.com/musterhq/muster/internal/archive/pebble"
	"github.com/musterhq/muster/internal/cluster/exchange"
	"github.com/musterhq/muster/internal/cluster/link"
	"github.com/musterhq/muster/internal/cluster/presence"
	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
	journalraft "github.com/musterhq/muster/internal/journal/raft"
	"github.com/musterhq/muster/internal/waittest"
)

// node is a complete node without its doors: links over TLS, the journal in memory, the engine.
type node struct {
	*engine.Engine
	id      string
	link    *link.Link
	journal *journalraft.Node
	peers   *exchange.Peers
	others  *exchange.Archives
	vault   *archivepebble.Archive
	home    home
	there   *presence.Presence
	drops   atomic.Int32 // how often its doors had to drop their connections
	stop    context.CancelFunc
	leading sync.WaitGroup
	closed  sync.Once
}

// home has the disks of a node.
type home struct {
	journal, archive *vfs.MemFS
	engine           engine.Config // what a test wants to be different
	trailing         int
}

func newHome() home { return home{journal: vfs.NewMem(), archive: vfs.NewMem()} }

// newNode starts a node; the first one is a cluster by itself.
func newNode(t testing.TB, a *trust.Authority, id string, first bool) *node {
	t.Helper()
	return newHome().open(t, a, id, first)
}

func (h home) open(t testing.TB, a *trust.Authority, id string, first bool) *node {
	t.Helper()
	identity, err := trust.NewIdentity(trust.NodeID(id), a, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{id: id, home: h}
	var answers atomic.Pointer[func(context.Context, byte, []byte) (byte, []byte)]
	n.link, err = link.Open(link.Options{Listen: "127.0.0.1:0", Identity: identity, Node: func(ctx context.Context, conn net.Conn, _ trust.NodeID) {
		if answer := answers.Load(); answer != nil {
			_ = exchange.Serve(ctx, conn, *answer)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = n.link.Serve() }()
	transport, err := n.link.Transport()
	if err != nil {
		t.Fatal(err)
	}
	n.journal, err = journalraft.Open(journalraft.Options{Dir: "data", FS: h.journal, ID: id, Transport: transport, Bootstrap: first, Trailing: h.trailing})
	if err != nil {
		t.Fatal(err)
	}
	dial := func(ctx context.Context, address, to string) (net.Conn, error) {
		return n.link.Dial(ctx, address, trust.NodeID(to), link.Node)
	}
	n.peers = exchange.NewPeers(id, n.journal, dial)
	n.others = exchange.NewArchives(func() (all []exchange.Node) {
		for _, m := range n.journal.Status().Members {
			if m.ID != id {
				all = append(all, exchange.Node{ID: m.ID, Address: m.Address})
			}
		}
		return all
	}, dial)
	if n.vault, err = archivepebble.Open(archivepebble.Options{Dir: "archive", FS: h.archive}); err != nil {
		t.Fatal(err)
	}
	config := h.engine
	config.Archive, config.Cell, config.Peers, config.Archives, config.Patience = n.vault, cell.DefaultConfig(), n.peers, n.others, time.Minute
	n.Engine, err = engine.OpenReplica(t.Context(), config, n.journal)
	if err != nil {
		t.Fatal(err)
	}
	n.there = presence.Open(presence.Config{
		Node: id, Engine: n.Engine, Ask: n.peers.Ask, Log: slog.New(slog.DiscardHandler), Standing: func() presence.Standing { return presence.Standing{} },
		From: func() map[trust.NodeID]netip.Addr { return nil }, Learn: func(map[trust.NodeID]netip.Addr) {},
	})
	n.there.WhenGivenUp(func() { n.drops.Add(1) })
	answer := exchange.Answer(n.Engine, n.journal, map[byte]exchange.Handler{presence.Question: n.there.Answer}, nil)
	answers.Store(&answer)
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	n.leading.Go(func() {
		for {
			j, err := n.journal.Lead(ctx)
			if err != nil {
				return
			}
			if err := n.Lead(ctx, j); err == nil {
				n.there.Lead()
				<-j.Ended()
				n.there.Rest()
			}
		}
	})
	t.Cleanup(func() { n.close(t) })
	return n
}

// close stops a node without informing the others.
func (n *node) close(t testing.TB) {
	n.closed.Do(func() {
		n.stop()
		n.peers.Close()
		n.others.Close()
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		n.there.Close(gone)
		if err := errors.Join(n.link.Close(), n.journal.Close()); err != nil {
			t.Error(err)
		}
		n.leading.Wait()
		_ = n.Engine.Close()
		_ = n.vault.Close()
	})
}

func newCluster(t testing.TB) []*node {
	t.Helper()
	a, err := trust.New(uuid.New(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return newClusterOf(t, newNode(t, a, "n1", true), newNode(t, a, "n2", false), newNode(t, a, "n3", false))
}

// newClusterOf makes a cluster: the first node admits the others.
func newClusterOf(t testing.TB, nodes ...*node) []*node {
	t.Helper()
	if err := nodes[0].Do(t.Context(), &hosting.CreateLocation{Name: "custom-first"}); err != nil {
		t.Fatal(err)
	}
	leader := func() *journalraft.Node {
		for _, n := range nodes {
			if n.journal.Status().InOffice {
				return n.journal
			}
		}
		return nodes[0].journal
	}
	for _, n := range nodes[1:] { // repeatedly: on a busy machine, the leader may lose contact with the new voter
		waittest.Until(t, n.id+" is an observer", func() bool { return leader().AddObserver(t.Context(), n.id, n.link.Advertised()) == nil })
		waittest.Until(t, n.id+" has a vote", func() bool { return leader().Promote(t.Context(), n.id) == nil })
	}
	for _, n := range nodes { // a voter that does not know another one refuses it its vote
		voters := func() (voters int) {
			for _, m := range n.journal.Status().Members {
				if m.Votes {
					voters++
				}
			}
			return voters
		}
		waittest.Until(t, n.id+" knows three voters", func() bool { return voters() >= 3 })
	}
	waittest.Until(t, "the first node leads", func() bool {
		return nodes[0].journal.Status().InOffice || leader().HandOver(t.Context(), nodes[0].id) == nil
	})
	return nodes
}

func sees(t *testing.T, n *node, location string) (there bool) {
	t.Helper()
	if err := n.Read(t.Context(), func(v *cell.View) error { _, there = v.Location(location); return nil }); err != nil {
		t.Errorf("%s: %v", n.id, err)
	}
	return there
}

// TestLeaderDies: callers at every node create a record, read it at another node, and delete it, while the leader hands over, and then dies. No call fails, none
// takes effect twice, and a change that one node acknowledged is visible at the next at once.
func TestLeaderDies(t *testing.T) {
	nodes := newCluster(t)
	var made, elsewhere atomic.Int32 // calls, and callers that have left the node that dies
	var work sync.WaitGroup
	const callers, each = 6, 60
	for caller := range callers {
		work.Go(func() {
			for i := range each {
				at, next := nodes[(caller+i)%3], nodes[(caller+i+1)%3]
				if i == each/2 {
					elsewhere.Add(1)
				}
				if i >= each/2 {
					at, next = nodes[1+i%2], nodes[2-i%2]
				}
				name := fmt.Sprintf("custom-%d-%d", caller, i)
				if err := at.Do(t.Context(), &hosting.CreateLocation{Name: name}); err != nil {
					t.Errorf("%s at %s: %v", name, at.id, err)
				} else if !sees(t, next, name) {
					t.Errorf("%s was acknowledged by %s, and is missing at %s", name, at.id, next.id)
				} else if err := next.Do(t.Context(), &hosting.DeleteLocation{Name: name}); err != nil {
					t.Errorf("delete %s at %s: %v", name, next.id, err)
				}
				made.Add(1)
			}
		})
	}
	after := func(part int32, what string, do func()) {
		waittest.Until(t, "calls before: "+what, func() bool {
			return made.Load() >= callers*each*part/8 && (part <= 3 || elsewhere.Load() >= callers)
		})
		t.Log(what)
		do()
	}
	after(1, "hand over", func() {
		if err := nodes[0].journal.HandOver(t.Context(), "n2"); err != nil {
			t.Error(err)
		}
	})
	after(3, "and back", func() {
		if err := nodes[1].journal.HandOver(t.Context(), "n1"); err != nil {
			t.Error(err)
		}
	})
	after(5, "the leader dies", func() { nodes[0].close(t) })
	work.Wait()
	if err := nodes[1].Read(t.Context(), func(v *cell.View) error {
		if all := v.Locations("", 1000); len(all) != 1 {
			t.Errorf("%d locations are left, want the first one: %v", len(all), all)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestDecides: exactly one node reports that it is the leader, and an isolated node still shows the state that it has.
func TestDecides(t *testing.T) {
	nodes := newCluster(t)
	if err := nodes[0].Decides(t.Context()); err != nil {
		t.Error(err)
	}
	for _, n := range nodes[1:] {
		if err := n.Decides(t.Context()); !errors.Is(err, engine.ErrNotLeading) {
			t.Errorf("%s: %v", n.id, err)
		}
	}
	if !sees(t, nodes[2], "custom-first") {
		t.Error("missing")
	}
	nodes[0].close(t)
	nodes[1].close(t)
	there := false
	if err := nodes[2].ReadHere(t.Context(), func(v *cell.View) error { _, there = v.Location("custom-first"); return nil }); err != nil || !there {
		t.Errorf("%t, %v", there, err)
	}
	if err := nodes[2].Decides(t.Context()); !errors.Is(err, engine.ErrNotLeading) {
		t.Error(err)
	}
}

// BenchmarkChanges: durable changes by 64 callers at the leader or at a follower, in a cluster of three nodes over TLS with journals in memory.
func BenchmarkChanges(b *testing.B) {
	nodes := newCluster(b)
	var callers atomic.Int32
	for i, name := range []string{"at the leader", "at another node"} {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(64 / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				name := fmt.Sprint("custom-", callers.Add(1))
				for made := false; pb.Next(); made = !made {
					var cmd kernel.Command = &hosting.CreateLocation{Name: name}
					if made {
						cmd = &hosting.DeleteLocation{Name: name}
					}
					if err := nodes[i].Do(b.Context(), cmd); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkReads: linearizable reads by 64 callers.
func BenchmarkReads(b *testing.B) {
	nodes := newCluster(b)
	for i, name := range []string{"at the leader", "at another node"} {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(64 / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := nodes[i].Read(b.Context(), func(*cell.View) error { return nil }); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
