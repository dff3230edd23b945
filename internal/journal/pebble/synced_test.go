package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/logtest"
)

// logged writes a journal in a single log, and returns where each of its entries ends there.
func logged(t *testing.T, disk *embeddbtest.Disk, entries uint64) (ends []int) {
	t.Helper()
	j, err := Open(Options{Dir: faultDir, FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	for n := uint64(1); n <= entries; n++ {
		if err := j.Append(t.Context(), n, bytes.Repeat([]byte{byte(n)}, 5000)); err != nil {
			t.Fatal(err)
		}
		_, log := newestLog(t, disk)
		ends = append(ends, len(log))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return ends
}

// openLogged opens a journal, and returns how many entries can be read and what it logged.
func openLogged(t *testing.T, disk *embeddbtest.Disk, accept bool) (entries uint64, said string, err error) {
	t.Helper()
	log := &logtest.Log{}
	j, err := Open(Options{Dir: faultDir, FS: disk, Logger: slog.New(slog.NewTextHandler(log, nil)), AcceptLostTail: accept})
	if err != nil {
		return 0, log.String(), err
	}
	defer j.Close()
	for entry, err := range j.Read(t.Context(), 1) {
		if err != nil {
			return entries, log.String(), err
		}
		entries = entry.Number
	}
	return entries, log.String(), nil
}

func TestALostTailIsRefused(t *testing.T) {
	const entries = 12
	whole := embeddbtest.NewDisk()
	ends := logged(t, whole, entries)
	path, log := newestLog(t, whole)
	log = log[:ends[entries-1]] // without what closing has added
	for name, c := range map[string]struct {
		log  []byte // nil: removed
		left uint64 // entries that can be read
		kept bool   // there is something to cut off and keep
	}{
		"cut by a byte":                 {log[:len(log)-1], entries - 1, true},
		"cut by a record":               {log[:ends[entries-2]], entries - 1, false},
		"cut in the middle":             {log[:ends[4]+100], 5, true},
		"cut, zeros behind":             {append(bytes.Clone(log[:ends[4]]), make([]byte, 70_000)...), 5, false},
		"cut to nothing":                {log[:0], 0, false},
		"last record damaged":           {flipped(log, ends[entries-2]+2000), entries - 1, true},
		"damaged with records behind":   {flipped(log, ends[6]+2000), 7, true},
		"damaged from there to its end": {append(bytes.Clone(log[:ends[6]]), bytes.Repeat([]byte{0xa5}, len(log)-ends[6])...), 7, true},
	} {
		t.Run(name, func(t *testing.T) {
			disk := whole.Crash()
			embeddbtest.WriteFile(t, disk.Mem(), path, c.log)
			for range 2 { // a refused start destroys nothing
				_, _, err := openLogged(t, disk, false)
				lost, ok := errors.AsType[*journal.Damaged](err)
				want := fmt.Sprintf("entries %d to %d, %d in all", c.left+1, entries, entries-c.left)
				if c.left == 0 {
					want = fmt.Sprintf("entries up to %d", entries)
				}
				if !ok || !lost.Tail || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), disk.PathBase(path)) {
					t.Fatalf("got %v, want a lost tail of %q in %s", err, want, path)
				}
			}
			if got := embeddbtest.ReadFile(t, disk.Mem(), path); !bytes.Equal(got, c.log) {
				t.Fatal("the refused start has changed the log")
			}
			got, _, err := openLogged(t, disk, true)
			if err != nil || got != c.left {
				t.Fatalf("accepted: %d entries, %v, want %d", got, err, c.left)
			}
			keptAs := faultDir + "." + disk.PathBase(path) + ".lost"
			if _, err := disk.Stat(keptAs); (err == nil) != c.kept {
				t.Errorf("a copy of the log: %v, want one: %v", err, c.kept)
			} else if c.kept && !bytes.Equal(embeddbtest.ReadFile(t, disk.Mem(), keptAs), c.log) {
				t.Error("the damaged log was not kept")
			}
			j, err := Open(Options{Dir: faultDir, FS: disk, AcceptLostTail: true})
			if err == nil {
				err = errors.Join(j.Append(t.Context(), c.left+1, []byte("on")), j.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, _, err := openLogged(t, disk, false); err != nil || got != c.left+1 {
				t.Errorf("after the next append: %d entries, %v, want %d", got, err, c.left+1)
			}
		})
	}
	t.Run("log removed", func(t *testing.T) {
		disk := whole.Crash()
		if err := disk.Remove(path); err != nil {
			t.Fatal(err)
		}
		_, _, err := openLogged(t, disk, false)
		if lost, ok := errors.AsType[*journal.Damaged](err); !ok || !lost.Tail {
			t.Fatalf("got %v, want a lost tail", err)
		}
		if got, _, err := openLogged(t, disk, true); err != nil || got != 0 {
			t.Errorf("accepted: %d entries, %v", got, err)
		}
	})
}

// A disk that fails or a process that is killed while the lost end is cut off takes no entry before it: neither the journal's, nor the copy of the log that is kept.
func TestCuttingOffALostTailIsAtomic(t *testing.T) {
	whole := embeddbtest.NewDisk()
	ends := logged(t, whole, 12)
	path, log := newestLog(t, whole)
	damaged := flipped(log, ends[6]+2000)
	for n := 1; ; n++ {
		disk := whole.Crash()
		embeddbtest.WriteFile(t, disk.Mem(), path, damaged)
		disk.FailAt(n, errors.New("failing on purpose"), false)
		if _, _, err := openLogged(t, disk, true); err == nil && !disk.Met() {
			break
		}
		disk.FailAt(1<<30, nil, false)
		if got, _, err := openLogged(t, disk, true); err != nil || got != 7 {
			t.Fatalf("operation %d failed: %d entries, %v, want 7", n, got, err)
		}
		if kept := embeddbtest.ReadFile(t, disk.Mem(), faultDir+"."+disk.PathBase(path)+".lost"); !bytes.Equal(kept, damaged) {
			t.Fatalf("operation %d failed: the damaged log was not kept", n)
		}
	}
}

// Once a lost tail is accepted, a power cut that takes what was not synced takes only that.
func TestAnAcceptedLossStaysAccepted(t *testing.T) {
	disk := embeddbtest.NewDisk()
	ends := logged(t, disk, 12)
	path, log := newestLog(t, disk)
	embeddbtest.WriteFile(t, disk.Mem(), path, log[:ends[4]])
	j, err := Open(Options{Dir: faultDir, FS: disk, AcceptLostTail: true})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for n := uint64(6); n <= 8; n++ {
		if got, _, err := openLogged(t, disk.Crash(), false); err != nil || got != n-1 {
			t.Fatalf("after a power cut: %d entries, %v, want %d", got, err, n-1)
		}
		if err := j.Append(t.Context(), n, []byte("on")); err != nil {
			t.Fatal(err)
		}
	}
}

func flipped(log []byte, at int) []byte {
	damaged := bytes.Clone(log)
	damaged[at] ^= 4
	return damaged
}

// A write that was unfinished when the process was killed is cut off, and the log reports its size.
func TestATornTailIsToldAndCut(t *testing.T) {
	disk := embeddbtest.NewDisk()
	j, err := Open(Options{Dir: faultDir, FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for n := uint64(1); n <= 4; n++ {
		if err := j.Append(t.Context(), n, bytes.Repeat([]byte{byte(n)}, 5000)); err != nil {
			t.Fatal(err)
		}
	}
	path, before := newestLog(t, disk)
	known := embeddbtest.ReadFile(t, disk.Mem(), faultDir+"/"+embeddb.SyncedName)
	if err := j.Append(t.Context(), 5, bytes.Repeat([]byte{5}, 5000)); err != nil {
		t.Fatal(err)
	}
	_, after := newestLog(t, disk)
	for _, written := range []int{20, 1000, 4900} {
		killed := disk.Crash()
		embeddbtest.WriteFile(t, killed.Mem(), path, append(bytes.Clone(after[:len(before)+written]), make([]byte, 40_000)...))
		embeddbtest.WriteFile(t, killed.Mem(), faultDir+"/"+embeddb.SyncedName, known)
		got, said, err := openLogged(t, killed, false)
		if err != nil || got != 4 || !strings.Contains(said, "was cut") || !strings.Contains(said, fmt.Sprintf("bytes=%d", written)) {
			t.Errorf("%d bytes written: %d entries, %v, said %q", written, got, err, said)
		}
	}
	if got, said, err := openLogged(t, disk.Crash(), false); err != nil || got != 5 || strings.Contains(said, "was cut") {
		t.Errorf("after a power cut behind a sync: %d entries, %v, said %q", got, err, said)
	}
}

// Without the file the journal still works, but does not know how far it was synced.
func TestAJournalThatDoesNotKnowHowFarItWasSynced(t *testing.T) {
	whole := embeddbtest.NewDisk()
	logged(t, whole, 3)
	known := embeddbtest.ReadFile(t, whole.Mem(), faultDir+"/"+embeddb.SyncedName)
	for name, content := range map[string][]byte{"empty": {}, "cut": known[:9], "flipped": flipped(known, 20)} {
		disk := whole.Crash()
		embeddbtest.WriteFile(t, disk.Mem(), faultDir+"/"+embeddb.SyncedName, content)
		got, said, err := openLogged(t, disk, false)
		if err != nil || got != 3 || strings.Contains(said, "cannot be used") != (name != "empty") {
			t.Errorf("%s: %d entries, %v, said %q", name, got, err, said)
		}
	}
	disk := whole.Crash()
	if err := disk.Remove(faultDir + "/" + embeddb.SyncedName); err != nil {
		t.Fatal(err)
	}
	if got, _, err := openLogged(t, disk, false); err != nil || got != 3 {
		t.Errorf("removed: %d entries, %v", got, err)
	}
}

// Entries before the latest snapshot are contained in it: without the entries after it, the journal continues from there.
func TestALostTailBeforeTheSnapshotIsMadeUpForByIt(t *testing.T) {
	disk := embeddbtest.NewDisk()
	j, err := Open(Options{Dir: faultDir, FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	var ends []int
	for n := uint64(1); n <= 6; n++ {
		if err := j.Append(t.Context(), n, bytes.Repeat([]byte{byte(n)}, 5000)); err != nil {
			t.Fatal(err)
		}
		_, log := newestLog(t, disk)
		ends = append(ends, len(log))
	}
	if err := j.SaveSnapshot(t.Context(), 5, func(w io.Writer) error { _, err := w.Write([]byte("state")); return err }); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	path, log := newestLog(t, disk)
	embeddbtest.WriteFile(t, disk.Mem(), path, log[:ends[2]])
	if _, _, err := openLogged(t, disk, false); err == nil {
		t.Fatal("opened")
	}
	j, err = Open(Options{Dir: faultDir, FS: disk, AcceptLostTail: true})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if last, err := j.Last(t.Context()); err != nil || last != 5 {
		t.Errorf("last entry %d, %v, want 5", last, err)
	}
	at, r, err := j.LatestSnapshot(t.Context())
	if err != nil || at != 5 {
		t.Fatal(at, err)
	}
	r.Close()
	if err := j.Append(t.Context(), 6, []byte("on")); err != nil {
		t.Fatal(err)
	}
	for entry, err := range j.Read(t.Context(), 6) {
		if err != nil || entry.Number != 6 {
			t.Errorf("entry %d, %v", entry.Number, err)
		}
	}
}
