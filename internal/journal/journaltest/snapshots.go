package journaltest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/journal"
)

func snapshotsComeBack(t *testing.T, j *journalUnderTest) {
	j.wantNoSnapshot()
	j.append(1, 10)
	j.save(4, []byte("state after 4"))
	j.wantSnapshot(4, []byte("state after 4"))
	j.save(9, nil) // a snapshot may be empty
	j.wantSnapshot(9, nil)
	j.save(10, []byte("state after 10"))
	j.save(10, []byte("state after 10, once more"))
	j.wantSnapshot(10, []byte("state after 10, once more"))
	j.reopen()
	j.wantSnapshot(10, []byte("state after 10, once more"))
	j.wantEntries(1, 1, 10) // a snapshot trims nothing
}

func snapshotsAreWholeOrAbsent(t *testing.T, j *journalUnderTest) {
	j.append(1, 10)
	broken := errors.New("the state could not be encoded")
	half := func(w io.Writer) error {
		if _, err := w.Write(bytes.Repeat([]byte("half of a state"), 100_000)); err != nil {
			return err
		}
		return broken
	}
	err := j.SaveSnapshot(j.Context(), 3, half)
	wantError(t, "save half a snapshot", err, broken)
	wantUsable(t, "save half a snapshot", err)
	j.wantNoSnapshot()

	j.save(4, []byte("state after 4"))
	wantError(t, "save half a snapshot", j.SaveSnapshot(j.Context(), 8, half), broken)
	j.wantSnapshot(4, []byte("state after 4"))

	ctx, cancel := context.WithCancel(j.Context())
	err = j.SaveSnapshot(ctx, 8, func(w io.Writer) error {
		cancel()
		for { // a writer that checks only its errors
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return err
			}
		}
	})
	wantError(t, "save with a context that ends", err, context.Canceled)
	wantUsable(t, "save with a context that ends", err)
	j.wantSnapshot(4, []byte("state after 4"))

	// Other callers also get the previous snapshot until the new one is complete.
	err = j.SaveSnapshot(j.Context(), 8, func(w io.Writer) error {
		if _, err := w.Write([]byte("state after 8")); err != nil {
			return err
		}
		j.wantSnapshot(4, []byte("state after 4"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	j.wantSnapshot(8, []byte("state after 8"))
	j.reopen()
	j.wantSnapshot(8, []byte("state after 8"))
}

func snapshotsFitTheEntries(t *testing.T, j *journalUnderTest) {
	j.append(1, 10)
	j.save(5, []byte("state after 5"))
	for _, at := range []uint64{0, 4, 11} { // without an entry, older than the latest, and after an entry that is not durable
		err := j.SaveSnapshot(j.Context(), at, writeAll([]byte("does not fit")))
		wantError(t, "save a snapshot that does not fit", err, journal.ErrOutOfOrder)
		wantUsable(t, "save a snapshot that does not fit", err)
	}
	j.wantSnapshot(5, []byte("state after 5"))
}

func largeSnapshots(t *testing.T, j *journalUnderTest) {
	j.append(1, 1)
	payload := bytes.Repeat([]byte("a state of several megabytes, "), 200_000)
	err := j.SaveSnapshot(j.Context(), 1, func(w io.Writer) error {
		for rest := payload; len(rest) > 0; { // in pieces, as the engine encodes it
			n := min(len(rest), 12_345)
			if _, err := w.Write(rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	j.reopen()
	j.wantSnapshot(1, payload)
}

func trim(t *testing.T, j *journalUnderTest) {
	j.append(1, 20)
	j.save(15, []byte("state after 15"))
	if err := j.Trim(j.Context(), 8); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		j.wantEntries(8, 8, 20)
		j.wantEntries(0, 8, 20)
		wantError(t, "read a trimmed entry", j.readError(7), journal.ErrTrimmed)
		j.wantLast(20)
		j.reopen()
	}
	if err := j.Trim(j.Context(), 3); err != nil { // trimmed long ago
		t.Fatal(err)
	}
	j.append(21, 21)
	j.wantEntries(8, 8, 21)
}

func trimKeepsWhatNoSnapshotHolds(t *testing.T, j *journalUnderTest) {
	j.append(1, 10)
	refused := func(before uint64) {
		t.Helper()
		err := j.Trim(j.Context(), before)
		wantError(t, "trim what no snapshot holds", err, journal.ErrOutOfOrder)
		wantUsable(t, "trim what no snapshot holds", err)
	}
	refused(2)
	j.save(5, []byte("state after 5"))
	refused(7)
	if err := j.Trim(j.Context(), 6); err != nil {
		t.Fatal(err)
	}
	j.wantEntries(6, 6, 10)
}

func trimOfEverythingKeepsTheNumbers(t *testing.T, j *journalUnderTest) {
	j.append(1, 10)
	j.save(10, []byte("state after 10"))
	if err := j.Trim(j.Context(), 11); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		j.wantLast(10)
		j.wantEntries(0, 1, 0)
		j.wantEntries(11, 11, 10)
		j.reopen()
	}
	wantError(t, "append entry 1 again", j.Append(j.Context(), 1, batch(1)), journal.ErrOutOfOrder)
	j.append(11, 12)
	j.reopen()
	j.wantEntries(11, 11, 12)
	j.wantSnapshot(10, []byte("state after 10"))
}

func appendsBesideSnapshotsReadsAndTrims(t *testing.T, j *journalUnderTest) {
	const entries = 400
	j.append(1, 1)
	done := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() { // saves and trims like the engine
		for {
			last, err := j.Last(j.Context())
			if err == nil {
				err = j.SaveSnapshot(j.Context(), last, writeAll(batch(last)))
			}
			if err == nil {
				err = j.Trim(j.Context(), last+1)
			}
			if err != nil {
				t.Errorf("save and trim beside appends: %v", err)
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	others.Go(func() { // reads like a follower that begins with the latest snapshot
		for {
			at, r, err := j.LatestSnapshot(j.Context())
			if err != nil {
				t.Errorf("open latest snapshot beside appends: %v", err)
				return
			}
			if r != nil {
				got, err := io.ReadAll(r)
				if r.Close(); err != nil || !bytes.Equal(got, batch(at)) {
					t.Errorf("snapshot after entry %d beside appends: got %q and error %v", at, got, err)
					return
				}
			}
			next := at + 1
			for entry, err := range j.Read(j.Context(), next) {
				if errors.Is(err, journal.ErrTrimmed) {
					break // a newer snapshot replaced it meanwhile
				}
				if err != nil || entry.Number != next || !bytes.Equal(entry.Batch, batch(next)) {
					t.Errorf("read beside appends: got entry %d with %q and error %v, want entry %d", entry.Number, entry.Batch, err, next)
					return
				}
				next++
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for n := uint64(2); n <= entries; n++ {
		if err := j.Append(j.Context(), n, batch(n)); err != nil {
			t.Errorf("append entry %d beside the others: %v", n, err)
			break
		}
	}
	close(done)
	others.Wait()
	if t.Failed() {
		return
	}
	j.reopen()
	j.wantLast(entries)
	j.wantEntries(0, j.firstKept(), entries)
}

func (j *journalUnderTest) firstKept() uint64 {
	j.Helper()
	for entry, err := range j.Read(j.Context(), 0) {
		if err != nil {
			j.Fatal(err)
		}
		return entry.Number
	}
	last, err := j.Last(j.Context())
	if err != nil {
		j.Fatal(err)
	}
	return last + 1
}
