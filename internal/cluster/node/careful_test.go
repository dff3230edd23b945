package node_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal/raft"
	"github.com/musterhq/muster/internal/waittest"
)

// A reachable observer that lags gets no vote, because a majority would have to wait for it. It gets one once it has caught up.
func TestPromoteWaitsForTheObserver(t *testing.T) {
	a := start(t, options(t.TempDir(), ""))
	a.until("office", func(s node.Status) bool { return s.Leader == a.ID() })
	o := options(t.TempDir(), a.token())
	o.Observer = true
	b := start(t, o)
	a.until("the observer", func(s node.Status) bool {
		return slices.ContainsFunc(s.Members, func(m node.Member) bool { return m.ID == b.ID() && m.Level > 0 && m.Behind == 0 })
	})
	reading, read, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { // a reader holds the observer's state, so that nothing is applied to it
		done <- b.ReadHere(context.Background(), func(*cell.View) error { close(reading); <-read; return nil })
	}()
	<-reading
	for _, name := range []string{"custom-1", "custom-2", "custom-3"} {
		a.create(name)
	}
	_, err := a.Change(t.Context(), node.Change{Do: node.Promote, Node: b.ID()})
	if !domain.IsRefused(err, domain.Conflict) || !strings.Contains(err.Error(), "behind") {
		t.Errorf("promoted while it was behind: %v", err)
	}
	close(read)
	if err := <-done; err != nil {
		t.Error(err)
	}
	waittest.Until(t, "the node has caught up and is promoted", func() bool {
		s, err := a.Change(t.Context(), node.Change{Do: node.Promote, Node: b.ID()})
		if err != nil && !domain.IsRefused(err, domain.Conflict) {
			t.Fatal(err)
		}
		_, voters, _ := roles(s)
		return err == nil && voters == 1
	})
}

// A leader that hands over to any node chooses a live one: Raft's library takes the first of the most up-to-date nodes, even if it is dead.
func TestHandOverPassesADeadVoter(t *testing.T) {
	for _, dead := range []int{0, 1} {
		a, b, c := trio(t, start(t, options(t.TempDir(), "")), t.TempDir(), t.TempDir())
		gone, next := b, c
		if dead == 1 {
			gone, next = c, b
		}
		gone.end()
		s, err := a.Change(t.Context(), node.Change{Do: node.HandOver})
		if err != nil || s.Leader != next.ID() {
			t.Errorf("with voter %d dead (%s): %v, the leader is %s, want %s", dead, gone.ID(), err, s.Leader, next.ID())
		}
	}
}

// A survivor whose archive lacked records, for which its recovery has accepted the loss, becomes a single machine that starts.
func TestLeaveAfterAnAcceptedLoss(t *testing.T) {
	dir := t.TempDir()
	m := startConfigured(t, options(dir, ""), func(c *engine.Config) { c.EndedLinger = time.Nanosecond })
	before := m.Applied()
	err := m.Do(t.Context(), &hosting.CreateQueue{Queue: placement.Queue{Name: "cup", Timeout: time.Minute}})
	if err == nil {
		err = m.Do(t.Context(), &hosting.StartPlacement{Placement: placement.Placement{ID: "p1", Queue: "cup", PlayersMax: 2}})
	}
	if err == nil {
		err = m.Do(t.Context(), &hosting.StopPlacement{ID: "p1"})
	}
	if err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "what ended leaves memory", func() bool {
		forgotten := uint64(0)
		_ = m.ReadHere(t.Context(), func(v *cell.View) error { forgotten = v.Forgotten(); return nil })
		return forgotten > 0
	})
	state, err := m.Engine.Backup(t.Context())
	if err == nil {
		err = m.Journal().SaveSnapshot(t.Context(), state.Entry, state.Write)
	}
	if err != nil {
		t.Fatal(err)
	}
	cluster := m.Data().Cluster()
	m.end()
	o := datadir.Options{Dir: dir, Program: "test"}
	d, err := datadir.OpenMember(o)
	if err == nil { // as if the snapshot had come from another node, whose archive has the placement
		err = errors.Join(d.Archive.SetInstallation(cluster, archive.Mark{Journal: before}),
			d.Archive.SetCoverage(t.Context(), archive.Coverage{Entry: state.Entry, Next: 1, Lacks: true, From: 1}), d.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := node.LeaveCluster(t.Context(), o); !errors.Is(err, engine.ErrArchiveLacks) {
		t.Errorf("left while its archive lacks records: %v", err)
	}
	if err := node.RecoverCluster(o, func(string, raft.Recovered, archive.Coverage) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := node.LeaveCluster(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	alone, err := datadir.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	e, err := engine.Open(t.Context(), engine.Config{Journal: alone.Journal, Archive: alone.Archive, Cell: cell.DefaultConfig(), Loaded: alone.CheckState})
	if err != nil {
		t.Fatalf("the single machine does not start: %v", err)
	}
	e.Close()
}

// A node that has caught up opens its doors only once its followers have what it caught up with: otherwise the list of access keys could lack one, or accept a revoked one.
func TestCurrentWaitsForFollowers(t *testing.T) {
	a := start(t, options(t.TempDir(), ""))
	a.until("office", func(s node.Status) bool { return s.Leader == a.ID() })
	o := options(t.TempDir(), a.token())
	o.Observer = true
	received, release := make(chan struct{}), make(chan struct{})
	b := startFollowed(t, o, func(*engine.Config) {}, func(e *engine.Engine) {
		e.Follow(kernel.Kinds(new(hosting.LocationChanged)), func(engine.Committed) { close(received); <-release })
		a.create("custom-1")
	})
	<-received
	b.sees("custom-1")
	time.Sleep(100 * time.Millisecond) // a node that does not wait is current by then, unless the machine is very slow
	if b.Current() {
		t.Error("the node is current while a follower has not received everything")
	}
	close(release)
	waittest.Until(t, "the node is current", b.Current)
}
