package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/waittest"
)

const faultDir = "data"

// onFaultyDisk returns options with tables so small that a few entries fill one.
func onFaultyDisk(disk *embeddbtest.Disk) Options {
	return Options{Dir: faultDir, FS: disk, MemTable: 128 << 10}
}

// faultBatch returns a batch so large that a dozen fill a table. It is small because Pebble searches a torn chunk for a flipped bit, in time
// quadratic in its size.
func faultBatch(n uint64) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%08d", n), 8<<10/8)
}

// work appends, saves and trims until something fails and returns the number of the last append that was acknowledged.
func work(t *testing.T, disk *embeddbtest.Disk) (acknowledged uint64, err error) {
	t.Helper()
	j, err := Open(onFaultyDisk(disk))
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			wantEveryCallToFail(t, j, acknowledged)
		}
		_ = j.Close()
	}()
	for n := uint64(1); n <= 60; n++ {
		if err := j.Append(t.Context(), n, faultBatch(n)); err != nil {
			return acknowledged, err
		}
		acknowledged = n
		if n%20 != 0 {
			continue
		}
		err := j.SaveSnapshot(t.Context(), n, func(w io.Writer) error {
			_, err := w.Write(faultBatch(n))
			return err
		})
		if err != nil {
			continue // a failed snapshot leaves the journal usable, if the snapshot has failed
		}
		if err := j.Trim(t.Context(), n-10); err != nil {
			return acknowledged, err
		}
	}
	return acknowledged, nil
}

func wantEveryCallToFail(t *testing.T, j *Journal, acknowledged uint64) {
	t.Helper()
	first := j.Append(t.Context(), acknowledged+1, nil)
	if !errors.Is(first, journal.ErrFailed) {
		t.Errorf("append after a failed one: got %v, want ErrFailed", first)
	}
	_, lastErr := j.Last(t.Context())
	if !errors.Is(lastErr, journal.ErrFailed) {
		t.Errorf("last after a failed append: got %v, want ErrFailed", lastErr)
	}
	for _, err := range j.Read(t.Context(), 0) {
		if !errors.Is(err, journal.ErrFailed) {
			t.Errorf("read after a failed append: got %v, want ErrFailed", err)
		}
	}
	if cause := j.db.Err(); cause == nil || !errors.Is(first, cause) {
		t.Errorf("append after a failed one: got %v, which does not name the first cause %v", first, cause)
	}
}

// wantAcknowledged opens the disk and checks that it has every acknowledged append and in addition at most the one that failed, and that
// the journal continues.
func wantAcknowledged(t *testing.T, disk *embeddbtest.Disk, acknowledged uint64) {
	t.Helper()
	j, err := Open(onFaultyDisk(disk))
	if err != nil {
		t.Fatalf("open again: %v", err)
	}
	defer j.Close()
	last, err := j.Last(t.Context())
	if err != nil || last < acknowledged || last > acknowledged+1 {
		t.Fatalf("last entry: got %d and error %v; %d were acknowledged", last, err, acknowledged)
	}
	at, snapshot, err := j.LatestSnapshot(t.Context())
	if err != nil {
		t.Fatalf("latest snapshot: %v", err)
	}
	if at > 0 {
		got, err := io.ReadAll(snapshot)
		snapshot.Close()
		if err != nil || !bytes.Equal(got, faultBatch(at)) {
			t.Fatalf("snapshot after entry %d: got %d bytes and error %v", at, len(got), err)
		}
	}
	next := at + 1
	for entry, err := range j.Read(t.Context(), next) {
		if err != nil || entry.Number != next || !bytes.Equal(entry.Batch, faultBatch(next)) {
			t.Fatalf("entry %d: got entry %d with %d bytes and error %v", next, entry.Number, len(entry.Batch), err)
		}
		next++
	}
	if next != last+1 {
		t.Fatalf("read ended before entry %d, want up to %d", next, last)
	}
	if err := j.Append(t.Context(), last+1, faultBatch(last+1)); err != nil {
		t.Fatalf("append after opening again: %v", err)
	}
}

func TestEveryFailingWriteIsAnErrorAndLosesNothing(t *testing.T) {
	healthy := embeddbtest.NewDisk()
	if _, err := work(t, healthy); err != nil {
		t.Fatal(err)
	}
	step := 3
	if testing.Short() {
		step = 67
	}
	for n := 1; n <= healthy.Operations(); n += step {
		for _, healing := range []bool{true, false} {
			disk := embeddbtest.NewDisk()
			disk.FailAt(n, syscall.EIO, healing)
			acknowledged, err := work(t, disk)
			if !disk.Met() {
				continue // the background had less work this time
			}
			if err != nil && !errors.Is(err, syscall.EIO) {
				t.Errorf("operation %d fails: got %v, want the disk's error", n, err)
			}
			disk.FailAt(0, nil, true)
			crashed := disk.Crash()
			wantAcknowledged(t, disk, acknowledged) // in the same process, without a crash
			wantAcknowledged(t, crashed, acknowledged)
			if t.Failed() {
				t.Fatalf("operation %d of the disk failed, healing %v", n, healing)
			}
		}
	}
}

func TestAFullDiskIsAnErrorAndLosesNothing(t *testing.T) {
	step := int64(17 << 10)
	if testing.Short() {
		step = 85 << 10
	}
	for room := int64(0); room < 500<<10; room += step {
		disk := embeddbtest.NewDisk()
		disk.Fill(room)
		acknowledged, err := work(t, disk)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("disk with room for %d bytes: got %v, want ENOSPC", room, err)
		}
		disk.Fill(1 << 40)
		crashed := disk.Crash()
		wantAcknowledged(t, disk, acknowledged) // in the same process, without a crash
		wantAcknowledged(t, crashed, acknowledged)
		if t.Failed() {
			t.Fatalf("the disk had room for %d bytes", room)
		}
	}
}

func TestASnapshotWithoutRoomLeavesTheJournalUsable(t *testing.T) {
	disk := embeddbtest.NewDisk()
	j, err := Open(onFaultyDisk(disk))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Append(t.Context(), 1, faultBatch(1)); err != nil {
		t.Fatal(err)
	}
	disk.Fill(100 << 10)
	err = j.SaveSnapshot(t.Context(), 1, func(w io.Writer) error {
		_, err := w.Write(make([]byte, 10<<20))
		return err
	})
	if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, journal.ErrFailed) {
		t.Errorf("snapshot without room: got %v, want ENOSPC and a usable journal", err)
	}
	disk.Fill(1 << 30)
	if err := j.Append(t.Context(), 2, faultBatch(2)); err != nil {
		t.Errorf("append after a snapshot that failed: %v", err)
	}
	if names, _ := disk.List(disk.PathJoin(faultDir, "snapshots")); len(names) != 0 {
		t.Errorf("files left of a snapshot that failed: %v", names)
	}
}

// Without a file descriptor for its next file the journal waits, reports the shortage, and continues later. Nothing is lost.
func TestTheJournalWaitsForDescriptors(t *testing.T) {
	disk := embeddbtest.NewDisk()
	j, err := Open(onFaultyDisk(disk))
	if err != nil {
		t.Fatal(err)
	}
	var appended atomic.Uint64
	ended := make(chan error, 1)
	disk.NoDescriptors(true)
	const entries = 100 // several files
	go func() {
		for n := uint64(1); n <= entries; n++ {
			if err := j.Append(t.Context(), n, faultBatch(n)); err != nil {
				ended <- err
				return
			}
			appended.Store(n)
		}
		ended <- nil
	}()
	for j.Shortage() == nil {
		select {
		case err := <-ended:
			t.Fatalf("the appends ended with %v before the journal waited", err)
		case <-time.After(time.Millisecond):
		}
	}
	if err := j.Shortage(); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("what the journal waits for: got %v, want EMFILE", err)
	}
	if _, err := j.Last(t.Context()); err != nil {
		t.Errorf("a journal that waits is usable: got %v", err)
	}
	disk.NoDescriptors(false)
	if err := <-ended; err != nil {
		t.Fatalf("append after the shortage: %v", err)
	}
	waittest.Until(t, "the shortage is over", func() bool { return j.Shortage() == nil })
	crashed := disk.Crash()
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	wantAcknowledged(t, disk, entries)
	wantAcknowledged(t, crashed, entries)
}

// A journal that waits can be closed.
func TestAJournalThatWaitsIsClosed(t *testing.T) {
	disk := embeddbtest.NewDisk()
	j, err := Open(onFaultyDisk(disk))
	if err != nil {
		t.Fatal(err)
	}
	disk.NoDescriptors(true)
	var acknowledged atomic.Uint64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := uint64(1); j.Append(t.Context(), n, faultBatch(n)) == nil; n++ {
			acknowledged.Store(n)
		}
	}()
	waittest.Until(t, "there is a shortage", func() bool { return j.Shortage() != nil })
	_ = j.Close()
	<-ended
	disk.NoDescriptors(false)
	wantAcknowledged(t, disk, acknowledged.Load())
}
