package raft

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
	"github.com/musterhq/muster/internal/journal"
)

// Raft's library refuses all requests during a hand-over, and may never notice its end. Then the node fails instead of keeping its followers waiting, and
// works again after it was opened again.
func TestAHandOverThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disks := map[string]*embeddbtest.Disk{}
		c := newCluster(t, func(id string) Options {
			if disks[id] == nil {
				disks[id] = embeddbtest.NewDisk()
			}
			return Options{Dir: "data", FS: disks[id], Trailing: -1}
		})
		c.hangs = make(chan struct{})
		if err := c.grow(three...); err != nil {
			t.Fatal(err)
		}
		defer c.stopAll()
		j, leader := leading(t, c)
		mustAppend(t, j, 1, 1)
		if err := c.nodes[leader].HandOver(t.Context(), ""); err == nil {
			t.Fatal("a hand-over that hangs succeeded")
		}
		failed := make(chan error)
		go func() { failed <- j.Append(t.Context(), 2, batch(2)) }()
		select {
		case err := <-failed:
			wantAll(t, err, journal.ErrFailed)
		case <-time.After(time.Minute):
			t.Errorf("the append waits on at %+v", c.nodes[leader].Status())
		}
		if err := c.nodes[leader].Err(); !errors.Is(err, ErrReopen) {
			t.Errorf("the node failed with %v, want ErrReopen", err)
		}
		close(c.hangs)
		if err := c.stop(leader); err != nil {
			t.Fatal(err)
		}
		if _, err := c.start(leader, false); err != nil {
			t.Fatal(err)
		}
		j, _ = leading(t, c)
		mustAppend(t, j, 2, 2)
		wantEntries(t, c.nodes[leader], 1, 1, 2)
	})
}
