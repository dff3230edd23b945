package journaltest

import (
	"errors"
	"io"
	"testing"

	"github.com/musterhq/muster/internal/journal"
)

func TestMemory(t *testing.T) {
	disks := map[string]*Memory{}
	Run(t, Engine{Open: func(name string) (journal.Journal, error) {
		if disks[name] == nil {
			disks[name] = NewMemory(1)
		}
		return disks[name].Open()
	}})
}

func TestFaultsOfMemory(t *testing.T) {
	for _, test := range []struct {
		fault       Fault
		crash       bool
		least, most uint64 // of the last entry after opening again, with 2 acknowledged
	}{
		{fault: NotWritten, least: 2, most: 2},
		{fault: NotWritten, crash: true, least: 2, most: 2},
		{fault: Written, least: 3, most: 3},
		{fault: Written, crash: true, least: 3, most: 3},
		{fault: Unsynced, least: 3, most: 3},
		{fault: Unsynced, crash: true, least: 2, most: 3},
	} {
		seen := map[uint64]bool{}
		for seed := range uint64(20) {
			disk := NewMemory(seed)
			opened, _ := disk.Open()
			j := &journalUnderTest{T: t, Journal: opened}
			j.append(1, 2)
			disk.FailNext(test.fault)
			err := j.Append(t.Context(), 3, batch(3))
			wantError(t, "append with a fault", err, ErrDisk)
			wantError(t, "append with a fault", err, journal.ErrFailed)
			wantError(t, "append after it", j.Append(t.Context(), 3, batch(3)), ErrDisk)
			wantError(t, "read after it", j.readError(1), journal.ErrFailed)
			if test.crash {
				disk.Crash()
			}
			j.Journal, _ = disk.Open()
			last, err := j.Last(t.Context())
			if err != nil || last < test.least || last > test.most {
				t.Errorf("fault %d, crash %v: last entry %d and error %v, want %d to %d", test.fault, test.crash, last, err, test.least, test.most)
			}
			seen[last] = true
			j.append(last+1, 5)
			disk.Crash()
			wantError(t, "append after a crash", j.Append(t.Context(), 6, batch(6)), ErrCrashed)
			j.Journal, _ = disk.Open()
			j.wantEntries(1, 1, 5) // what was once read or acknowledged stays
		}
		if want := int(test.most - test.least + 1); len(seen) != want {
			t.Errorf("fault %d, crash %v: outcomes %v over the seeds, want %d different ones", test.fault, test.crash, seen, want)
		}
	}
}

func TestSnapshotFaultsOfMemory(t *testing.T) {
	disk := NewMemory(1)
	opened, _ := disk.Open()
	j := &journalUnderTest{T: t, Journal: opened}
	j.append(1, 3)
	j.save(1, []byte("one"))
	disk.FailNextSave(NotWritten)
	err := j.SaveSnapshot(t.Context(), 2, writeAll([]byte("two")))
	wantError(t, "save with a fault", err, ErrDisk)
	wantUsable(t, "save with a fault", err)
	j.wantSnapshot(1, []byte("one"))
	disk.FailNextSave(Written)
	wantError(t, "save with a fault", j.SaveSnapshot(t.Context(), 2, writeAll([]byte("two"))), ErrDisk)
	j.wantSnapshot(2, []byte("two"))
}

func TestMemoryIsTheSameForTheSameSeed(t *testing.T) {
	outcomes := func(seed uint64) (all []bool) {
		disk := NewMemory(seed)
		disk.SetFaults(Faults{AppendNotWritten: 0.2, AppendWritten: 0.2, AppendUnsynced: 0.2, SnapshotNotWritten: 0.3})
		for range 200 {
			j, _ := disk.Open()
			last, _ := j.Last(t.Context())
			err := j.Append(t.Context(), last+1, batch(last))
			saved := j.SaveSnapshot(t.Context(), max(last, 1), func(io.Writer) error { return nil })
			all = append(all, errors.Is(err, ErrDisk), errors.Is(saved, ErrDisk))
			if last%5 == 0 {
				disk.Crash()
			}
		}
		return all
	}
	first, again := outcomes(7), outcomes(7)
	for i := range first {
		if first[i] != again[i] {
			t.Fatalf("call %d had another outcome with the same seed", i)
		}
	}
}
