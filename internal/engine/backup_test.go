package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/archive/archivetest"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/journal/journaltest"
	"github.com/musterhq/muster/internal/sim/canon"
	"github.com/musterhq/muster/internal/waittest"
)

// wantAfter fails unless a frozen state equals the state after its entry in the journal.
func wantAfter(t *testing.T, f *engine.Frozen, j journal.Journal) {
	t.Helper()
	replayed := cell.New(cell.DefaultConfig())
	at, snapshot, err := j.LatestSnapshot(t.Context()) // one was made when the level was raised
	if err != nil {
		t.Fatal(err)
	}
	if snapshot != nil {
		if err := errors.Join(replayed.Load(snapshot), snapshot.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for entry, err := range j.Read(t.Context(), at+1) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Number > f.Entry {
			break
		}
		if err := replayed.Replay(entry.Number, entry.Batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := canon.Differ(fmt.Sprint("the state after entry ", f.Entry), f, replayed.Freeze()); err != nil {
		t.Error(err)
	}
	if f.Last != replayed.Last() || f.Level != replayed.Level() || f.Forgotten != replayed.Forgotten() {
		t.Errorf("frozen %+v", f)
	}
	loaded := cell.New(cell.DefaultConfig())
	state := &bytes.Buffer{}
	if err := errors.Join(f.Write(state), loaded.Load(state)); err != nil {
		t.Error(err)
	}
}

// While others write, a backup has the state after a whole entry, with everything that was acknowledged before it.
func TestBackupWhileOthersWrite(t *testing.T) {
	h := newHouse(t, engine.Config{})
	h.hall()
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			name := fmt.Sprint("custom-", w)
			for range 50 {
				if err := errors.Join(h.Do(t.Context(), &hosting.CreateLocation{Name: name}), h.Do(t.Context(), &hosting.DeleteLocation{Name: name})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 20 {
		before := h.Applied()
		f, err := h.Backup(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if f.Entry < before || f.Entry > h.Applied() {
			t.Errorf("it is after entry %d, asked after %d, durable is %d", f.Entry, before, h.Applied())
		}
		wantAfter(t, f, h.gate.Journal)
	}
	writers.Wait()
}

// A backup waits for the group that is being built, and ends with an error when that is lost.
func TestBackupWaitsForTheDisk(t *testing.T) {
	for _, fails := range []bool{false, true} {
		h := newHouse(t, engine.Config{})
		h.hall()
		game := h.game("g", 10)
		h.gate.shut()
		for i := range 2 { // one is being appended, one is being built
			go func() { _ = h.reserve(game, i) }()
			waittest.Until(t, "an append to hang", func() bool { return h.gate.held.Load() == 1 })
		}
		waittest.Until(t, "a group to be built behind it", func() bool { return h.Gathered() > 0 })
		type outcome struct {
			f   *engine.Frozen
			err error
		}
		got := make(chan outcome, 1)
		go func() {
			f, err := h.Backup(t.Context())
			got <- outcome{f, err}
		}()
		waittest.Until(t, "the backup to wait", func() bool { return h.FreezesAsked() == 1 })
		if fails {
			h.disk.FailNext(journaltest.NotWritten)
		}
		h.gate.open()
		switch x := <-got; {
		case fails && !errors.Is(x.err, engine.ErrStopped):
			t.Errorf("the journal has failed, and the backup says %v, %v", x.f, x.err)
		case !fails && x.err != nil:
			t.Error(x.err)
		case !fails:
			wantAfter(t, x.f, h.gate.Journal)
		}
	}
}

// A replica freezes its own state. One whose archive lacks records refuses until it has them.
func TestBackupOfAReplica(t *testing.T) {
	c, others, config, disk := newArchives(t)
	leader, follower := c.members[0], c.members[1]
	c.endGames(leader, "before", 5)
	c.snapshotBehind(leader)
	c.agree()
	f, err := follower.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := canon.Differ("the follower's", f, leader.Freeze()); err != nil {
		t.Error(err)
	}
	late := c.open(config, disk, archivetest.NewMemory(1))
	c.install(leader, late)
	waittest.Until(t, "the snapshot to be noticed", func() bool { _, lacks := late.ArchiveLacks(); return lacks })
	if _, err := late.Backup(t.Context()); !errors.Is(err, engine.ErrArchiveLacks) {
		t.Errorf("a node whose archive lacks records: %v", err)
	}
	others.set("n1", leader)
	c.complete(late, leader)
	if _, err := late.Backup(t.Context()); err != nil {
		t.Error(err)
	}
	c.house(leader).must(&hosting.CreateLocation{Name: "custom-later"})
}

// The journal after the last backup is kept for the next one, until it has grown too large.
func TestJournalKeptForBackups(t *testing.T) {
	h := newHouse(t, engine.Config{SnapshotEvery: 1, JournalKept: 4096})
	h.must(&hosting.CreateLocation{Name: "custom-first"})
	from := h.Applied() + 1 // a snapshot that is under way trims what is before
	has := func() bool {
		err := engine.Entries(t.Context(), h.Engine, from, from, func(journal.Entry) error { return nil })
		if err != nil && !errors.Is(err, journal.ErrTrimmed) {
			t.Fatal(err)
		}
		return err == nil
	}
	engine.KeepJournal(h.Engine, from)
	saved := func() (at uint64) {
		at, r, err := h.gate.Journal.LatestSnapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r != nil {
			r.Close()
		}
		return at
	}
	n := 0
	more := func() {
		n++
		h.must(&hosting.CreateLocation{Name: fmt.Sprint("custom-", n)})
	}
	for deadline := time.Now().Add(time.Minute); saved() <= from+3; more() {
		if time.Now().After(deadline) {
			t.Fatal("no snapshot was saved")
		}
	}
	if n < 30 && !has() { // fewer than 4,096 bytes
		t.Error("the journal that the next backup needs was trimmed")
	}
	for deadline := time.Now().Add(time.Minute); has(); more() {
		engine.KeepJournal(h.Engine, from) // of a backup that fails again and again
		if time.Now().After(deadline) {
			t.Fatal("the journal grows without end")
		}
	}
}
