package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/searchindex"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal/journaltest"
	"github.com/musterhq/muster/internal/sim/canon"
	"github.com/musterhq/muster/internal/waittest"
)

// install gives a node that was cut off another node's snapshot.
func (c *cluster) install(from, to *member) (at uint64) {
	c.Helper()
	from.disk.lock.Lock()
	at, state := from.disk.at, from.disk.state
	from.disk.lock.Unlock()
	to.disk.install(at, state)
	return at
}

// snapshotBehind waits until the leader m has saved a snapshot that covers all entries up to now.
func (c *cluster) snapshotBehind(m *member) {
	c.Helper()
	c.savedBehind(m, m)
}

// savedBehind is snapshotBehind for a node that follows leader.
func (c *cluster) savedBehind(m, leader *member) {
	c.Helper()
	c.group.lock.Lock()
	now := uint64(len(c.group.entries))
	c.group.lock.Unlock()
	for i := 0; ; i++ {
		m.disk.lock.Lock()
		at := m.disk.at
		m.disk.lock.Unlock()
		if at > now {
			return
		}
		name := fmt.Sprintf("custom-%d-%d", now, i)
		c.house(leader).must(&hosting.CreateLocation{Name: name})
		c.house(leader).must(&hosting.DeleteLocation{Name: name})
	}
}

// same waits until two nodes have the same state.
func (c *cluster) same(a, b *member) {
	c.Helper()
	waittest.Until(c.T, "the same state", func() bool { return canon.Differ("a node", a.Freeze(), b.Freeze()) == nil })
}

// TestJump: a replica that receives snapshots instead of entries continues from them, several times in a row, while it is read. Its observers are told
// of each gap, and of every event after it.
func TestJump(t *testing.T) {
	patient := cell.DefaultConfig()
	patient.Hosting.Reservation = 24 * time.Hour // a cluster runs on real time: after a minute, slow machines would lose the seats that are counted
	c := newCluster(t, 2, engine.Config{SnapshotEvery: 1 << 10, Cell: patient})
	leader, late := c.members[0], c.members[1]
	if err := c.lead(leader, nil); err != nil {
		t.Fatal(err)
	}
	h := c.house(leader)
	h.hall()
	game := h.game("g1", 100)
	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	for range 4 {
		reading.Go(func() {
			for most := int32(0); ctx.Err() == nil; runtime.Gosched() { // on one processor, readers that never wait would take nearly all of it
				if err := late.Read(ctx, func(v *cell.View) error {
					if g, ok := v.GameSession(game); ok {
						if g.SeatsHeld < most {
							t.Errorf("%d seats are held, it was %d before", g.SeatsHeld, most)
						}
						most = g.SeatsHeld
					}
					return nil
				}); err != nil && ctx.Err() == nil {
					t.Errorf("read: %v", err)
				}
				page, err := late.SearchGameSessions(ctx, searchindex.Query{Fleet: testFleet, Most: 10})
				if err != nil && ctx.Err() == nil || len(page.Games) > 1 {
					t.Errorf("search: %d game sessions, %v", len(page.Games), err)
				}
			}
		})
	}
	var gaps []uint64
	seats := 0
	reserve := func() {
		if err := h.reserve(game, seats); err != nil {
			t.Fatal(err)
		}
		seats++
	}
	for range 5 {
		late.disk.cutOff()
		reserve()
		c.snapshotBehind(leader)
		gaps = append(gaps, c.install(leader, late))
		late.disk.cutOff() // again before it may have seen the first one
		reserve()
		c.snapshotBehind(leader)
		gaps = append(gaps, c.install(leader, late))
		reserve()
		c.same(late, leader)
	}
	stop()
	reading.Wait()
	if got := c.house(late).held(game); got != int32(seats) {
		t.Errorf("%d seats are held, want %d", got, seats)
	}
	last := gaps[len(gaps)-1]
	behind := func(m *member) []telling {
		return slices.DeleteFunc(m.heard(), func(x telling) bool { return x.number <= last })
	}
	waittest.Until(t, "the same news behind the last gap", func() bool {
		news := behind(leader)
		return len(news) > 0 && slices.Equal(behind(late), news)
	})
	heard := late.heard()
	if !slices.IsSortedFunc(heard, func(a, b telling) int { return int(a.number) - int(b.number) }) {
		t.Error("the news are out of order")
	}
	if !slices.Contains(heard, telling{number: last, event: "gap"}) {
		t.Errorf("the gap before entry %d was not told", last)
	}
	for _, x := range heard {
		if x.event == "gap" && !slices.Contains(gaps, x.number) {
			t.Errorf("told of a gap before entry %d, which there was not", x.number)
		}
	}
}

// TestLeadsBehindAJump: a node that received a snapshot an instant before it became leader begins with the snapshot's state.
func TestLeadsBehindAJump(t *testing.T) {
	c := newCluster(t, 2, engine.Config{SnapshotEvery: 1 << 10})
	for i := range 20 {
		leader, late := c.members[i%2], c.members[1-i%2]
		if err := c.lead(leader, nil); err != nil {
			t.Fatal(err)
		}
		late.disk.cutOff()
		c.snapshotBehind(leader)
		c.house(leader).must(&hosting.CreateLocation{Name: fmt.Sprint("custom-kept-", i)})
		c.install(leader, late)
		if err := c.lead(late, nil); err != nil {
			t.Fatal(err)
		}
		c.house(late).must(&hosting.DeleteLocation{Name: fmt.Sprint("custom-kept-", i)})
		late.StepDown()
		leader.StepDown()
	}
	c.same(c.members[0], c.members[1])
}

// TestJumpOfADeposedLeader: a node whose append failed drops the uncommitted entries, even if a snapshot has replaced the committed ones.
func TestJumpOfADeposedLeader(t *testing.T) {
	c := newCluster(t, 2, engine.Config{SnapshotEvery: 1 << 10})
	old, next := c.members[0], c.members[1]
	failing, goOn := make(chan struct{}), make(chan struct{})
	var armed sync.Once
	arm := false
	if err := c.lead(old, func() (fault journaltest.Fault) {
		if arm {
			armed.Do(func() {
				fault = journaltest.NotWritten
				close(failing)
				c.group.lock.Unlock() // the append hangs, while the others go on
				<-goOn
				c.group.lock.Lock()
			})
		}
		return fault
	}); err != nil {
		t.Fatal(err)
	}
	c.house(old).hall()
	c.group.lock.Lock()
	arm = true
	c.group.lock.Unlock()
	lost := make(chan error)
	go func() { lost <- old.Do(t.Context(), &hosting.CreateLocation{Name: "custom-lost"}) }()
	<-failing
	old.disk.cutOff()
	if err := c.lead(next, nil); err != nil {
		t.Fatal(err)
	}
	c.snapshotBehind(next)
	c.install(next, old)
	close(goOn)
	if err := <-lost; !errors.Is(err, engine.ErrStopped) {
		t.Errorf("the outcome is unknown, yet the error is %v", err)
	}
	c.same(old, next)
	if err := old.Read(t.Context(), func(v *cell.View) error {
		if _, there := v.Location("custom-lost"); there {
			t.Error("what was never committed is there")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
