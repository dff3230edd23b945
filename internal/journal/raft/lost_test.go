package raft

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
	"github.com/musterhq/muster/internal/waittest"
)

// A node that has received a snapshot has no entry at the snapshot's end. It still knows the term there, so it continues when the leader refers to that
// place again, because answers were lost. Its own next snapshot and a restart do not change that.
func TestAnswersAfterASnapshotAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disks := map[string]*embeddbtest.Disk{"a": embeddbtest.NewDisk(), "b": embeddbtest.NewDisk(), "c": embeddbtest.NewDisk()}
		c := newCluster(t, func(id string) Options { return Options{Dir: "data", FS: disks[id], Trailing: -1} })
		var to atomic.Value // the follower whose answers are lost
		to.Store("")
		lost := atomic.Int64{}
		c.loses = func(id raft.ServerID, request *raft.AppendEntriesRequest) bool {
			loses := len(request.Entries) > 0 && to.Load() == string(id)
			if loses {
				lost.Add(1)
			}
			return loses
		}
		if err := c.grow(three...); err != nil {
			t.Fatal(err)
		}
		defer c.stopAll()
		j, a := leading(t, c)
		b, third := others(a)[0], others(a)[1]
		c.isolate(b)
		mustAppend(t, j, 1, 10)
		saveAndTrim(t, c.nodes[a], 10)
		c.join(a, b)
		wantEntries(t, c.nodes[b], 11, 11, 10)
		wantSnapshot(t, c.nodes[b], 10)

		to.Store(b)
		mustAppend(t, j, 11, 12)
		wantEntries(t, c.nodes[b], 11, 11, 12)
		saveAndTrim(t, c.nodes[b], 11)
		if err := c.stop(b); err != nil {
			t.Fatal(err)
		}
		if _, err := c.start(b, false); err != nil {
			t.Fatal(err)
		}
		c.heal()
		c.isolate(third) // from here on, the leader needs b
		to.Store("")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := j.Append(ctx, 13, batch(13)); err != nil || lost.Load() == 0 {
			t.Fatalf("%v after %d lost answers; the leader %+v, the follower %+v", err, lost.Load(), c.nodes[a].Status(), c.nodes[b].Status())
		}
		wantEntries(t, c.nodes[b], 12, 12, 13)
	})
}

// A redundant snapshot does not make a node forget members that have joined since. Raft's library uses the members of each snapshot that it receives,
// although the node has kept the entries after it.
func TestMembersBehindARedundantSnapshotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disks := map[string]*embeddbtest.Disk{"a": embeddbtest.NewDisk(), "b": embeddbtest.NewDisk(), "c": embeddbtest.NewDisk()}
		c := newCluster(t, func(id string) Options { return Options{Dir: "data", FS: disks[id], Trailing: -1} })
		var to atomic.Value // the follower whose answers are lost
		to.Store("")
		c.loses = func(id raft.ServerID, request *raft.AppendEntriesRequest) bool {
			return len(request.Entries) > 0 && to.Load() == string(id)
		}
		if err := c.grow(three...); err != nil {
			t.Fatal(err)
		}
		defer c.stopAll()
		j, a := leading(t, c)
		b := others(a)[0]
		mustAppend(t, j, 1, 10)
		wantEntries(t, c.nodes[b], 1, 1, 10)
		to.Store(b)
		mustAppend(t, j, 11, 12)
		if err := c.nodes[a].AddObserver(t.Context(), "d", "at-d"); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, j, 13, 13)
		waittest.Until(t, "the follower has all entries", func() bool { return c.nodes[b].store.last.Load() == c.nodes[a].store.last.Load() })
		saveAndTrim(t, c.nodes[a], 12) // the leader no longer has the entry before those of which it knows nothing
		to.Store("")
		mustAppend(t, j, 14, 14)
		time.Sleep(time.Second) // the follower gets the snapshot, and may have to be opened again
		if err := c.nodes[b].Err(); errors.Is(err, ErrReopen) {
			if err := c.stop(b); err != nil {
				t.Fatal(err)
			}
			if _, err := c.start(b, false); err != nil {
				t.Fatal(err)
			}
		}
		mustAppend(t, j, 15, 15)
		wantEntries(t, c.nodes[b], 1, 1, 15)
		if members := c.nodes[b].Status().Members; len(members) != 4 {
			t.Errorf("the follower knows the members %+v, want four", members)
		}
	})
}
