package exchange_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/waittest"
)

// past is how many records had ended before a node joins.
const past = 100_000

// history puts records of the last 25 days into the archives of nodes, as if they had ended there.
func history(t *testing.T, nodes []*node, data []byte) {
	t.Helper()
	now := time.Now().Add(-time.Hour)
	for from := 0; from < past; from += 10_000 {
		var some []archive.Record
		for i := from; i < from+10_000; i++ {
			at := now.Add(-25 * 24 * time.Hour / past * time.Duration(past-i)).UnixMilli()
			some = append(some, archive.Record{Kind: archive.Placement, ID: fmt.Sprint("past-", i), Created: at, Ended: at, Data: data})
		}
		for _, n := range nodes {
			if err := n.vault.Put(t.Context(), some); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// place begins and ends a placement, and returns how long the two commands took.
func place(ctx context.Context, at *node, id string) (time.Duration, error) {
	began := time.Now()
	err := at.Do(ctx, &hosting.StartPlacement{Placement: placement.Placement{ID: id, Queue: "cup", PlayersMax: 2}})
	if err == nil {
		err = at.Do(ctx, &hosting.StopPlacement{ID: id})
	}
	return time.Since(began) / 2, err
}

// sum returns the sum of all records of an archive, and their number.
func sum(t *testing.T, n *node) (sum uint32, records int) {
	t.Helper()
	var all []archive.Record
	for place, more := (archive.Place{}), true; more; {
		page, err := n.vault.Page(t.Context(), place, 8<<20)
		if err != nil || page.Damaged > 0 {
			t.Fatalf("%d places are damaged, %v", page.Damaged, err)
		}
		all = append(all, page.Records...)
		place, more = page.Next, page.More
	}
	slices.SortFunc(all, func(a, b archive.Record) int {
		return archive.Cursor{Created: int64(a.Kind), ID: a.ID}.Compare(archive.Cursor{Created: int64(b.Kind), ID: b.ID})
	})
	all = slices.CompactFunc(all, func(a, b archive.Record) bool { return a.Kind == b.Kind && a.ID == b.ID })
	return archive.Sum(all), len(all)
}

// TestJoinerAndTheArchive: a node joins a cluster whose archive has 100,000 records, while placements continue. The leader dies in the middle of the copy, and the
// copying node is killed, too. It answers for every record from the first moment on, and finally has all of them.
func TestJoinerAndTheArchive(t *testing.T) {
	if testing.Short() {
		t.Skip("with the race detector Pebble checks itself at every look-up, and the copy takes many minutes; internal/engine has the same with few records")
	}
	a, err := trust.New(uuid.New(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	log := &logtest.Log{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log)
		}
	})
	config := engine.Config{EndedLinger: time.Nanosecond, SnapshotEvery: 32 << 10, Log: slog.New(slog.NewTextHandler(log, nil))}
	at := func() home { return home{vfs.NewCrashableMem(), vfs.NewCrashableMem(), config, -1} }
	nodes := newClusterOf(t, at().open(t, a, "n1", true), at().open(t, a, "n2", false), at().open(t, a, "n3", false))
	if err := nodes[0].Do(t.Context(), &hosting.CreateQueue{Queue: placement.Queue{Name: "cup", Timeout: time.Minute}}); err != nil {
		t.Fatal(err)
	}
	if _, err := place(t.Context(), nodes[0], "sample"); err != nil {
		t.Fatal(err)
	}
	var sample archive.Record
	for _, n := range nodes {
		waittest.Until(t, "the first record in each archive", func() (found bool) {
			sample, found, _ = n.vault.Get(t.Context(), archive.Placement, "sample")
			return found
		})
		// A node that joined behind the first snapshot, which a rise of the level saves at once, would otherwise lack all that is to come until it has asked.
		waittest.Until(t, "each archive to be complete", func() bool { _, lacks := n.ArchiveLacks(); return !lacks })
	}
	history(t, nodes, append(sample.Data, make([]byte, 0, 1)...))

	var ended atomic.Int64 // placements that were acknowledged
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	var late atomic.Pointer[node] // the node that joins
	var lock sync.Mutex
	took := map[bool][]time.Duration{} // commands, while the copy runs and otherwise
	for caller := range 2 {
		work.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("now-%d-%d", caller, i)
				d, err := place(t.Context(), nodes[1+caller], id)
				if err != nil {
					t.Errorf("%s: %v", id, err)
				}
				ended.Add(1)
				copies := false
				if n := late.Load(); n != nil {
					_, copies = n.ArchiveLacks()
					for _, id := range []string{id, fmt.Sprint("past-", rand.IntN(past))} {
						if p, err := n.Placement(t.Context(), id); err != nil && late.Load() == n {
							t.Errorf("the node that joined, about %s: %v, %v", id, p.ID, err)
						}
					}
				}
				lock.Lock()
				took[copies] = append(took[copies], d)
				lock.Unlock()
			}
		})
	}
	defer work.Wait()
	defer stop()
	waittest.Until(t, "the leader to trim its journal", func() bool {
		for _, err := range nodes[0].journal.Read(t.Context(), 1) {
			return errors.Is(err, journal.ErrTrimmed)
		}
		return false
	})
	joiner := at().open(t, a, "n4", false)
	if err := nodes[0].journal.AddObserver(t.Context(), joiner.id, joiner.link.Advertised()); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the joiner to notice what it lacks", func() bool { _, lacks := joiner.ArchiveLacks(); return lacks })
	late.Store(joiner)
	began := time.Now()
	reaches := func(n *node, share time.Duration) {
		t.Helper()
		waittest.Until(t, fmt.Sprintf("%d %% of the copy", share), func() bool {
			from, lacks := n.ArchiveLacks()
			return !lacks || time.Since(from) < 25*24*time.Hour*(100-share)/100
		})
		if _, lacks := n.ArchiveLacks(); !lacks {
			t.Logf("the copy was complete before %d %% were seen", share) // by a machine that had no time for the test
		}
	}
	reaches(joiner, 20)
	nodes[0].close(t)
	t.Logf("the leader dies %s after the copy began", time.Since(began).Round(time.Millisecond))
	reaches(joiner, 45)
	late.Store(nil)
	left := joiner.home
	left.journal, left.archive = left.journal.CrashClone(vfs.CrashCloneCfg{}), left.archive.CrashClone(vfs.CrashCloneCfg{})
	joiner.close(t)
	joiner = left.open(t, a, "n4", false)
	from, lacks := joiner.ArchiveLacks()
	if lacks && time.Since(from) > 25*24*time.Hour*60/100 {
		t.Errorf("behind the kill the copy begins at %s again", from)
	}
	waittest.Until(t, "the others to know its new address", func() bool {
		for _, n := range nodes[1:] {
			if n.journal.SetAddress(t.Context(), joiner.id, joiner.link.Advertised()) == nil {
				return true
			}
		}
		return false
	})
	late.Store(joiner)
	waittest.Until(t, "a complete archive", func() bool { _, lacks := joiner.ArchiveLacks(); return !lacks })
	t.Logf("the archive is complete after %s, with the time of two restarts", time.Since(began).Round(time.Millisecond))
	seen := ended.Load()
	waittest.Until(t, "further placements", func() bool { return ended.Load() > seen+20 })
	stop()
	work.Wait()
	for _, n := range []*node{nodes[1], joiner} {
		waittest.Until(t, "all that ended to be in the archive", func() (none bool) {
			_ = n.Read(t.Context(), func(v *cell.View) error { none = v.Totals().Ended == 0; return nil })
			return none
		})
	}
	want, records := sum(t, nodes[1])
	if got, there := sum(t, joiner); got != want || there != records || records < past+int(ended.Load()) {
		t.Errorf("%d records, want %d, of which %d ended just now", there, records, ended.Load())
	}
	lock.Lock()
	defer lock.Unlock()
	for copies, all := range took {
		slices.Sort(all)
		t.Logf("while the copy runs (%t): %d placements, a command took %s (median), %s (99 %%), %s (most)", copies, len(all), all[len(all)/2], all[len(all)*99/100], all[len(all)-1])
	}
}
