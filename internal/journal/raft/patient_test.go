package raft

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
	"github.com/musterhq/muster/internal/waittest"
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

// TestFarBehindOnASlowNetwork: a follower that lacks many large entries catches up, even if the answer to a request with all of them would come too late.
func TestFarBehindOnASlowNetwork(t *testing.T) {
	c := newCluster(t, func(id string) Options { return Options{Dir: filepath.Join(t.TempDir(), id)} })
	c.loses = func(_ raft.ServerID, r *raft.AppendEntriesRequest) bool {
		bytes := 0
		for _, l := range r.Entries {
			bytes += len(l.Data)
		}
		return bytes > 2*requestBytes
	}
	defer c.stopAll()
	if err := c.grow("a", "b", "c"); err != nil {
		t.Fatal(err)
	}
	j, err := c.lead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var followers []string
	for id := range c.nodes {
		if id != j.node.options.ID {
			followers = append(followers, id)
		}
	}
	behind, present := followers[0], followers[1]
	c.isolate(behind)
	large := make([]byte, requestBytes/4)
	for n := range uint64(20) {
		if err := j.Append(t.Context(), n+1, large); err != nil {
			t.Fatal(err)
		}
	}
	c.join(behind, j.node.options.ID)
	waittest.Until(t, "the follower has the last entry", func() bool { return c.nodes[behind].Last() >= 20 })
	if err := c.stop(present); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := j.Append(ctx, 21, large); err != nil { // which needs the follower's answer
		t.Error(err)
	}
}
