package raft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
	journalpebble "github.com/musterhq/muster/internal/journal/pebble"
	"github.com/musterhq/muster/internal/waittest"
)

var adopted = uuid.MustParse("0196e7a1-0000-7000-8000-000000000001")

// single writes a journal of a single machine, with a snapshot after entry at if it is not 0, and the entries before trim trimmed.
func single(t *testing.T, disk *embeddbtest.Disk, last, at, trim uint64) {
	t.Helper()
	j, err := journalpebble.Open(journalpebble.Options{Dir: "data/journal", FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.SetInstallation(adopted); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, j, 1, last)
	if at > 0 {
		err = j.SaveSnapshot(t.Context(), at, func(w io.Writer) error { _, err := w.Write(state(at)); return err })
	}
	if err == nil && trim > 0 {
		err = j.Trim(t.Context(), trim)
	}
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
}

func adoptOn(disk *embeddbtest.Disk) error {
	return Adopt(context.Background(), "data/journal", Options{Dir: "data/raft", ID: "a", FS: disk}, "at-a")
}

func leaveOn(disk *embeddbtest.Disk) error {
	return Leave(context.Background(), Options{Dir: "data/raft", ID: "a", FS: disk}, "data/journal")
}

func TestAdoptingAndLeavingLoseNothing(t *testing.T) {
	for _, c := range []struct{ last, at, trim uint64 }{{0, 0, 0}, {12, 0, 0}, {12, 5, 0}, {12, 12, 0}, {12, 5, 3}, {12, 5, 6}, {12, 12, 13}} {
		t.Run(fmt.Sprintf("%d entries, snapshot after %d, trimmed before %d", c.last, c.at, c.trim), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := embeddbtest.NewDisk()
				single(t, disk, c.last, c.at, c.trim)
				for range 2 {
					if err := adoptOn(disk); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := disk.Stat("data/journal"); err == nil {
					t.Error("the old journal is still in its place")
				}
				cluster := newCluster(t, func(id string) Options {
					if id != "a" {
						return Options{Dir: "data/raft", FS: embeddbtest.NewDisk()}
					}
					return Options{Dir: "data/raft", FS: disk, Trailing: -1}
				})
				n, err := cluster.start("a", false)
				if err != nil {
					t.Fatal(err)
				}
				j, _ := leading(t, cluster)
				if got := n.Installation(); got != adopted {
					t.Errorf("installation %s, want %s", got, adopted)
				}
				if c.at > 0 {
					wantSnapshot(t, n, c.at)
				}
				wantEntries(t, n, 0, max(c.trim, 1), c.last)
				mustAppend(t, j, c.last+1, c.last+4)
				if c.at > 0 {
					saveAndTrim(t, n, c.last+2)
				}
				if _, err := cluster.start("b", false); err != nil { // another node gets all of it, and leaves again
					t.Fatal(err)
				}
				if err := n.AddObserver(t.Context(), "b", "at-b"); err != nil {
					t.Fatal(err)
				}
				waittest.Until(t, "the other node has everything", func() bool { return cluster.nodes["b"].Last() == c.last+4 })
				if err := cluster.stopAll(); err != nil {
					t.Fatal(err)
				}
				if err := leaveOn(disk); !errors.Is(err, ErrMember) {
					t.Fatalf("leave with another member: %v", err)
				}
				if n, err = cluster.start("a", false); err != nil {
					t.Fatal(err)
				}
				leading(t, cluster)
				if err := errors.Join(n.Remove(t.Context(), "b"), cluster.stopAll()); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if err := leaveOn(disk); err != nil {
						t.Fatal(err)
					}
				}
				wantSingle(t, disk, c.at > 0, c.last+2, c.last+4)
			})
		})
	}
}

// wantSingle checks the journal of a single machine.
func wantSingle(t *testing.T, disk *embeddbtest.Disk, saved bool, at, last uint64) {
	t.Helper()
	j, err := journalpebble.Open(journalpebble.Options{Dir: "data/journal", FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if got := j.Installation(); got != adopted {
		t.Errorf("installation %s, want %s", got, adopted)
	}
	next := uint64(1)
	if saved {
		next = at + 1
		if got, r, err := j.LatestSnapshot(t.Context()); err != nil || got != at {
			t.Fatalf("snapshot after %d (%v), want %d", got, err, at)
		} else {
			r.Close()
		}
	}
	for entry, err := range j.Read(t.Context(), next) {
		if err != nil || entry.Number != next || string(entry.Batch) != string(batch(next)) {
			t.Fatalf("got entry %d with %q and error %v, want %d", entry.Number, entry.Batch, err, next)
		}
		next++
	}
	if next != last+1 {
		t.Fatalf("entries end before %d, want up to %d", next, last)
	}
	mustAppend(t, j, next, next)
}

// Whichever disk operation fails, and whether or not the power fails then, either the old or the new journal is whole, and the next attempt succeeds.
func TestAConversionThatStops(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, disk *embeddbtest.Disk)
		convert func(*embeddbtest.Disk) error
	}{
		"adopt": {func(*testing.T, *embeddbtest.Disk) {}, adoptOn},
		"leave": {func(t *testing.T, disk *embeddbtest.Disk) {
			if err := adoptOn(disk); err != nil {
				t.Fatal(err)
			}
		}, leaveOn},
	} {
		whole := embeddbtest.NewDisk()
		single(t, whole, 20, 8, 6)
		c.prepare(t, whole)
		trial := whole.Crash()
		if err := c.convert(trial); err != nil {
			t.Fatal(err)
		}
		step := 3
		if testing.Short() {
			step = 17
		}
		for at := 1; at <= trial.Operations(); at += step {
			disk := whole.Crash()
			disk.FailAt(at, syscall.EIO, false)
			failure := c.convert(disk)
			disk.FailAt(0, nil, true)
			for how, left := range map[string]*embeddbtest.Disk{"power cut": disk.Crash(), "continued": disk} {
				if err := c.convert(left); err != nil {
					t.Fatalf("%s, operation %d fails (%v), %s: again: %v", name, at, failure, how, err)
				}
				if name == "adopt" {
					if err := leaveOn(left); err != nil {
						t.Fatalf("%s, operation %d fails, %s: back: %v", name, at, how, err)
					}
				}
				wantSingle(t, left, true, 8, 20)
			}
		}
	}
}
