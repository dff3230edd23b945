package raft

import (
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
)

// shortDisk is a disk on which no table can be created while short is true. Other writes succeed.
type shortDisk struct {
	*embeddbtest.Disk
	short atomic.Bool
}

func (d *shortDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if d.short.Load() && filepath.Ext(name) == ".sst" {
		return nil, syscall.EMFILE
	}
	return d.Disk.Create(name, category)
}

// A leader that waits for space or descriptors hands over. A hand-over that fails is repeated, in the same shortage and in later ones, before the node stops.
func TestAHandOverDuringAShortageFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disks := map[string]*shortDisk{}
		c := newCluster(t, func(id string) Options {
			if disks[id] == nil {
				disks[id] = &shortDisk{Disk: embeddbtest.NewDisk()}
			}
			return Options{Dir: "data", FS: disks[id], Trailing: -1}
		})
		c.fails = &atomic.Bool{}
		if err := c.grow(three...); err != nil {
			t.Fatal(err)
		}
		defer c.stopAll()
		var leader string
		shortage := func(entry uint64, lasts func()) {
			t.Helper()
			var j *Journal
			j, leader = leading(t, c)
			mustAppend(t, j, entry, entry) // so that there is something to flush
			disks[leader].short.Store(true)
			flushed := make(chan struct{})
			go func() {
				defer close(flushed)
				_ = c.nodes[leader].store.db.FlushAll() // fails if the node does
			}()
			lasts()
			if c.nodes[leader].Shortage() == nil {
				t.Error("the leader does not wait for descriptors")
			}
			disks[leader].short.Store(false)
			<-flushed
		}
		leads := func() bool { return c.nodes[leader].Status().Role == Leader }

		c.fails.Store(true)
		shortage(1, func() { time.Sleep(3 * time.Second) }) // one and a half times the limit
		if err := c.nodes[leader].Err(); err != nil || !leads() {
			t.Fatalf("after hand-overs that failed: %v, %+v", err, c.nodes[leader].Status())
		}
		time.Sleep(time.Second) // the end of the shortage is noticed
		c.fails.Store(false)
		shortage(2, func() { time.Sleep(3 * time.Second) })
		if err := c.nodes[leader].Err(); err != nil || leads() {
			t.Fatalf("in the next shortage: %v, %+v", err, c.nodes[leader].Status())
		}
		c.fails.Store(true)
		shortage(3, func() {
			time.Sleep(2500 * time.Millisecond)
			c.fails.Store(false)
			time.Sleep(time.Second)
		})
		if err := c.nodes[leader].Err(); err != nil || leads() {
			t.Fatalf("when only the first hand-overs failed: %v, %+v", err, c.nodes[leader].Status())
		}
	})
}
