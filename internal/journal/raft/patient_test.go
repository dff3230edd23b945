package raft

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
)

// TestIdle counts the messages of an idle leader, on a virtual clock, and checks that followers nevertheless receive appended entries at once.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disks := map[string]*embeddbtest.Power{"a": embeddbtest.NewPower(1), "b": embeddbtest.NewPower(2), "c": embeddbtest.NewPower(3)}
		c := newCluster(t, func(id string) Options { return Options{Dir: "data", FS: disks[id]} })
		var heartbeats, others atomic.Int64
		c.sent = func(r *raft.AppendEntriesRequest) {
			if r.LeaderCommitIndex == 0 {
				heartbeats.Add(1)
			} else {
				others.Add(1)
			}
		}
		if err := c.grow("a", "b", "c"); err != nil {
			t.Fatal(err)
		}
		j, err := c.lead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const seconds = 60
		for number := uint64(1); number <= 20; number++ {
			// Later by 37 ms each time, to begin at any point of a delay.
			time.Sleep(3*time.Second + time.Duration(number)*37*time.Millisecond)
			mustAppend(t, j, number, number)
			time.Sleep(2*c.nodes["a"].options.CommitTimeout + time.Millisecond)
			for id, n := range c.nodes {
				if n.Last() != number {
					t.Errorf("node %s knows entry %d to be committed, want %d", id, n.Last(), number)
				}
			}
		}
		time.Sleep(time.Second)
		before, alive := others.Load(), heartbeats.Load()
		time.Sleep(seconds * time.Second)
		if sent := others.Load() - before; sent > 2*4*seconds {
			t.Errorf("an idle leader has sent %d messages besides heartbeats in %d s to two followers, want at most 4 a second to each", sent, seconds)
		}
		if sent := heartbeats.Load() - alive; sent < 2*10*seconds {
			t.Errorf("the leader has sent %d heartbeats in %d s to two followers, want 10 to 20 a second to each", sent, seconds)
		}
		if err := c.stopAll(); err != nil {
			t.Error(err)
		}
	})
}
