package pebble

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
)

// onFaultyDisk returns options with a memory table so small that some puts go through it and some past it.
func onFaultyDisk(disk *embeddbtest.Disk) Options {
	return Options{Dir: "data", FS: disk, MemTable: 64 << 10}
}

func faultRecord(n int) archive.Record {
	return archive.Record{
		Kind: archive.PlayerSession, ID: fmt.Sprintf("psess-%d", n), Created: int64(n), Ended: int64(n) * 3_600_000,
		Group: fmt.Sprintf("gsess-%d", n%7), Player: "player", Data: make([]byte, 300),
	}
}

// work puts and expires until something fails; the records with numbers from kept to below put were acknowledged and
// have not expired.
func work(t *testing.T, disk *embeddbtest.Disk) (kept, put int, err error) {
	t.Helper()
	a, err := Open(onFaultyDisk(disk))
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		if err != nil {
			if _, _, after := a.Get(t.Context(), archive.PlayerSession, "psess-1"); !errors.Is(after, archive.ErrFailed) {
				t.Errorf("get after %v: got %v, want ErrFailed", err, after)
			}
			if after := a.Put(t.Context(), []archive.Record{faultRecord(1)}); !errors.Is(after, archive.ErrFailed) {
				t.Errorf("put after %v: got %v, want ErrFailed", err, after)
			}
		}
		_ = a.Close()
	}()
	for round := range 18 {
		size := 3 + round%3*40
		var records []archive.Record
		for n := range size {
			records = append(records, faultRecord(put+n))
		}
		if err := a.Put(t.Context(), records); err != nil {
			return kept, put, err
		}
		put += size
		if round%6 == 5 {
			before := put - 100
			if _, err := a.Expire(t.Context(), int64(before)*3_600_000, 1<<20); err != nil {
				return kept, put, err
			}
			kept = max(kept, before)
		}
	}
	return kept, put, nil
}

func wantAcknowledged(t *testing.T, disk *embeddbtest.Disk, kept, put int) {
	t.Helper()
	a, err := Open(onFaultyDisk(disk))
	if err != nil {
		t.Fatalf("open again: %v", err)
	}
	defer a.Close()
	for n := kept; n < put; n += 11 {
		want := faultRecord(n)
		got, found, err := a.Get(t.Context(), want.Kind, want.ID)
		if err != nil || !found || got.Group != want.Group || got.Ended != want.Ended {
			t.Fatalf("record %d of %d to %d: got %+v, found %v, error %v", n, kept, put, got, found, err)
		}
	}
	listed := 0
	for after := (archive.Cursor{}); ; {
		page, err := a.List(t.Context(), archive.PlayerSession, archive.ByPlayer, "player", after, 500)
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		for _, record := range page {
			if record.Created >= int64(kept) && record.Created < int64(put) {
				listed++
			}
		}
		if len(page) < 500 {
			break
		}
		after = page[len(page)-1].Cursor()
	}
	if listed != put-kept {
		t.Fatalf("list: %d of the %d acknowledged records", listed, put-kept)
	}
	if err := a.Put(t.Context(), []archive.Record{faultRecord(1 << 20)}); err != nil {
		t.Fatalf("put after opening again: %v", err)
	}
}

func TestEveryFailingWriteIsAnErrorAndLosesNothing(t *testing.T) {
	healthy := embeddbtest.NewDisk()
	if _, _, err := work(t, healthy); err != nil {
		t.Fatal(err)
	}
	step := 5
	if testing.Short() {
		step = 97
	}
	for n := 1; n <= healthy.Operations(); n += step {
		for _, healing := range []bool{true, false} {
			disk := embeddbtest.NewDisk()
			disk.FailAt(n, syscall.EIO, healing)
			kept, put, err := work(t, disk)
			if err != nil && !errors.Is(err, syscall.EIO) {
				t.Errorf("operation %d fails: got %v, want the disk's error", n, err)
			}
			disk.FailAt(0, nil, true)
			crashed := disk.Crash()
			wantAcknowledged(t, disk, kept, put)
			wantAcknowledged(t, crashed, kept, put)
			if t.Failed() {
				t.Fatalf("operation %d of the disk failed, healing %v", n, healing)
			}
		}
	}
}

// The archive waits while the disk is full, unless the manifest did not fit, which is an error. No record is lost either way.
func TestAFullDiskLosesNothing(t *testing.T) {
	waited, step := 0, int64(7<<10)
	if testing.Short() {
		step = 29 << 10
	}
	for room := int64(0); room < 120<<10; room += step {
		disk := embeddbtest.NewDisk()
		disk.Fill(room)
		done := make(chan struct{})
		go func() { // makes space once something waits for it
			ticker := time.NewTicker(time.Millisecond)
			defer ticker.Stop()
			for seen := 0; seen < 50; {
				select {
				case <-done:
					return
				case <-ticker.C:
					if disk.Met() {
						seen++
					}
				}
			}
			disk.Fill(1 << 40)
		}()
		kept, put, err := work(t, disk)
		close(done)
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("disk with room for %d bytes: got %v, want ENOSPC or none", room, err)
		}
		if err == nil {
			waited++
		}
		disk.Fill(1 << 40)
		crashed := disk.Crash()
		wantAcknowledged(t, disk, kept, put)
		wantAcknowledged(t, crashed, kept, put)
		if t.Failed() {
			t.Fatalf("the disk had room for %d bytes", room)
		}
	}
	if waited == 0 {
		t.Error("the archive never waited for space")
	}
}

func TestACrashLosesNothingAcknowledged(t *testing.T) {
	disk := embeddbtest.NewDisk()
	a, err := Open(onFaultyDisk(disk))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for n := range 100 {
		if err := a.Put(t.Context(), []archive.Record{faultRecord(n)}); err != nil {
			t.Fatal(err)
		}
		if n%30 == 29 {
			wantAcknowledged(t, disk.Crash(), 0, n+1)
		}
	}
}

func TestASecondArchiveIsRefused(t *testing.T) {
	disk := embeddbtest.NewDisk()
	a, err := Open(onFaultyDisk(disk))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := Open(onFaultyDisk(disk)); !errors.Is(err, archive.ErrInUse) {
		t.Errorf("second open: got %v, want ErrInUse", err)
	}
}
