package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
	"github.com/musterhq/muster/internal/journal"
)

// newestLog returns the path and the content of the database's newest log, without the zeros ahead of its next record.
func newestLog(t *testing.T, disk *embeddbtest.Disk) (string, []byte) {
	t.Helper()
	names, err := disk.List(faultDir)
	if err != nil {
		t.Fatal(err)
	}
	newest := ""
	for _, name := range names {
		if strings.HasSuffix(name, ".log") && name > newest {
			newest = name
		}
	}
	path := disk.PathJoin(faultDir, newest)
	return path, bytes.TrimRight(embeddbtest.ReadFile(t, disk.Mem(), path), "\x00")
}

func openAndCount(t *testing.T, disk *embeddbtest.Disk) (entries uint64, err error) {
	t.Helper()
	j, err := Open(onFaultyDisk(disk))
	if err != nil {
		return 0, err
	}
	defer j.Close()
	for entry, err := range j.Read(t.Context(), 1) {
		if err != nil {
			return entries, err
		}
		entries = entry.Number
	}
	return entries, nil
}

func TestDamageInTheLogIsNamedAndATornTailIsCut(t *testing.T) {
	for size, samples := range map[int]int{100: 100, 5_000: 60, 100_000: 20} { // Pebble is slow with damaged large chunks
		if testing.Short() {
			samples /= 5
		}
		t.Run(fmt.Sprintf("entries of %d bytes", size), func(t *testing.T) {
			disk := embeddbtest.NewDisk()
			j, err := Open(Options{Dir: faultDir, FS: disk}) // one log for all
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = j.Close() })
			const entries = 12
			lastBegins := 0 // in the log
			for n := uint64(1); n <= entries; n++ {
				_, log := newestLog(t, disk)
				lastBegins = len(log)
				if err := j.Append(t.Context(), n, bytes.Repeat([]byte{byte(n)}, size)); err != nil {
					t.Fatal(err)
				}
			}
			path, log := newestLog(t, disk.Crash())

			for at := 0; at < len(log); at += 1 + len(log)/samples {
				damaged := bytes.Clone(log)
				damaged[at] ^= 0x10
				crashed := disk.Crash()
				embeddbtest.WriteFile(t, crashed.Mem(), path, damaged)
				got, err := openAndCount(t, crashed)
				switch {
				case at >= lastBegins && err == nil && got >= entries-1:
					continue // within the last record damage cannot be told from a torn tail
				case err == nil:
					t.Fatalf("byte %d of %d flipped: %d of %d entries and no error", at, len(log), got, entries)
				}
				place, ok := errors.AsType[*journal.Damaged](err)
				if !ok || !strings.Contains(place.File, filepath.Base(path)) && place.Entry == 0 {
					t.Fatalf("byte %d of %d flipped: got %v, want *journal.Damaged that names %s", at, len(log), err, path)
				}
			}

			for cut := lastBegins; cut < len(log); cut += 1 + (len(log)-lastBegins)/5 {
				for _, tail := range []int{0, 300, 40_000} { // the rest of a preallocated or reused file
					crashed := disk.Crash()
					embeddbtest.WriteFile(t, crashed.Mem(), path, append(bytes.Clone(log[:cut]), make([]byte, tail)...))
					if got, err := openAndCount(t, crashed); err != nil || got != entries-1 {
						t.Fatalf("cut at byte %d of %d, %d zeros behind: got %d entries and %v, want %d", cut, len(log), tail, got, err, entries-1)
					}
				}
			}
		})
	}
}

func TestDamageInATableIsNamed(t *testing.T) {
	disk := embeddbtest.NewDisk()
	j, err := Open(onFaultyDisk(disk))
	if err != nil {
		t.Fatal(err)
	}
	for n := uint64(1); n <= 60; n++ { // enough for several tables
		if err := j.Append(t.Context(), n, faultBatch(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := disk.List(faultDir)
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		tables++
		path := disk.PathJoin(faultDir, name)
		crashed := disk.Crash()
		content := embeddbtest.ReadFile(t, crashed.Mem(), path)
		for at := range 200 { // the middle has entries
			content[len(content)/2+at] ^= 0xff
		}
		embeddbtest.WriteFile(t, crashed.Mem(), path, content)
		if err := readAll(t, crashed); err != nil {
			if _, ok := errors.AsType[*journal.Damaged](err); !ok {
				t.Errorf("table %s damaged: got %v, want *journal.Damaged", name, err)
			}
		} else {
			t.Errorf("table %s damaged: everything was read", name)
		}
	}
	if tables == 0 {
		t.Errorf("no tables to damage in %v", names)
	}
}

func readAll(t *testing.T, disk *embeddbtest.Disk) error {
	t.Helper()
	j, err := Open(onFaultyDisk(disk))
	if err != nil {
		return err
	}
	defer j.Close()
	for _, err := range j.Read(t.Context(), 0) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestAMissingEntryIsNamed(t *testing.T) {
	disk := embeddbtest.NewDisk()
	j, err := Open(onFaultyDisk(disk))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for n := uint64(1); n <= 10; n++ {
		if err := j.Append(t.Context(), n, faultBatch(n)); err != nil {
			t.Fatal(err)
		}
	}
	wrong := make([]byte, checksumSize+3)
	putEntryValue(wrong, 8, []byte("abc")) // intact, but of another entry
	for name, change := range map[string]func() error{
		"removed": func() error { return j.db.Delete(entryKey(7), pebble.Sync) },
		"another": func() error { return j.db.Set(entryKey(7), wrong, pebble.Sync) },
		"short":   func() error { return j.db.Set(entryKey(7), []byte{1, 2}, pebble.Sync) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		last, failed := uint64(0), error(nil)
		for entry, err := range j.Read(t.Context(), 1) {
			if last, failed = entry.Number, err; err != nil {
				break
			}
			if last == 7 {
				t.Errorf("%s: entry 7 was given", name)
			}
		}
		damaged, ok := errors.AsType[*journal.Damaged](failed)
		if !ok || damaged.Entry != 7 {
			t.Errorf("%s: got %v, want damage at entry 7", name, failed)
		}
	}
}

func TestEntriesLostBehindASnapshotAreNoticed(t *testing.T) {
	disk := embeddbtest.NewDisk()
	j, err := Open(onFaultyDisk(disk))
	if err != nil {
		t.Fatal(err)
	}
	for n := uint64(1); n <= 3; n++ {
		if err := j.Append(t.Context(), n, faultBatch(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.SaveSnapshot(t.Context(), 3, func(w io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := j.db.Delete(entryKey(3), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Open(onFaultyDisk(disk))
	if damaged, ok := errors.AsType[*journal.Damaged](err); !ok || damaged.Entry != 3 {
		t.Errorf("open without the entry of its snapshot: got %v, want damage at entry 3", err)
	}
}

func TestADamagedSnapshotIsNamed(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Append(t.Context(), 1, nil); err != nil {
		t.Fatal(err)
	}
	if err := j.SaveSnapshot(t.Context(), 1, func(w io.Writer) error {
		_, err := w.Write(make([]byte, 1000))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "snapshots", "00000000000000000001.snapshot")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{3, len(content) / 2, len(content) - 1} {
		damaged := bytes.Clone(content)
		damaged[at]++
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		_, r, err := j.LatestSnapshot(t.Context())
		if err == nil {
			_, err = io.ReadAll(r)
			r.Close()
		}
		if place, ok := errors.AsType[*journal.Damaged](err); !ok || place.File != path {
			t.Errorf("byte %d changed: got %v, want damage in %s", at, err, path)
		}
	}
}

func FuzzDecodeEntry(f *testing.F) {
	intact := make([]byte, checksumSize+5)
	putEntryValue(intact, 3, []byte("batch"))
	f.Add(uint64(3), intact)
	f.Add(uint64(0), []byte{})
	f.Fuzz(func(t *testing.T, number uint64, value []byte) {
		if batch, err := decodeEntry(number, value); err == nil && len(batch)+checksumSize != len(value) {
			t.Errorf("%d bytes of batch in %d", len(batch), len(value))
		}
	})
}
