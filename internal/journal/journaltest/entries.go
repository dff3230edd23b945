package journaltest

import (
	"bytes"
	"context"
	"testing"

	"github.com/musterhq/muster/internal/journal"
)

func entriesComeBackInOrder(t *testing.T, j *journalUnderTest) {
	j.wantLast(0)
	j.wantEntries(1, 1, 0)
	j.append(1, 300) // more than 256: numbers must be ordered as numbers
	j.wantLast(300)
	j.wantEntries(1, 1, 300)
	j.wantEntries(0, 1, 300)
}

func entriesSurviveReopening(t *testing.T, j *journalUnderTest) {
	j.append(1, 10)
	j.reopen()
	j.wantLast(10)
	j.wantEntries(1, 1, 10)
	j.append(11, 20)
	j.reopen()
	j.wantEntries(1, 1, 20)
}

func gapsAreRefused(t *testing.T, j *journalUnderTest) {
	j.append(1, 3)
	for _, next := range []uint64{0, 1, 3, 5, 1 << 40} {
		err := j.Append(j.Context(), next, []byte("out of order"))
		wantError(t, "append out of order", err, journal.ErrOutOfOrder)
		wantUsable(t, "append out of order", err)
	}
	j.append(4, 4)
	j.wantEntries(1, 1, 4)
}

func theBatchStaysTheCallers(t *testing.T, j *journalUnderTest) {
	given := bytes.Clone(batch(1))
	if err := j.Append(j.Context(), 1, given); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(given, batch(1)) {
		t.Fatalf("append changed its caller's batch to %q", given)
	}
	clear(given)
	j.wantEntries(1, 1, 1)
}

func largeAndEmptyBatches(t *testing.T, j *journalUnderTest) {
	size := 20 << 20 // larger than any group of commands
	if testing.Short() {
		size = 2 << 20
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	for n, given := range [][]byte{nil, large, {}, {0}} {
		if err := j.Append(j.Context(), uint64(n)+1, given); err != nil {
			t.Fatalf("append %d bytes: %v", len(given), err)
		}
	}
	wantUsable(t, "append more than MaxBatchBytes", j.Append(j.Context(), 5, make([]byte, journal.MaxBatchBytes+1)))
	j.reopen()
	for entry, err := range j.Read(j.Context(), 2) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Number == 2 && !bytes.Equal(entry.Batch, large) {
			t.Fatalf("entry 2: got %d bytes that are not the %d appended", len(entry.Batch), len(large))
		}
	}
	j.wantLast(4)
}

func readFromTheMiddle(t *testing.T, j *journalUnderTest) {
	j.append(1, 20)
	j.wantEntries(13, 13, 20)
	j.wantEntries(20, 20, 20)
	j.wantEntries(21, 21, 20)
	j.wantEntries(1000, 1000, 999)
	for entry := range j.Read(j.Context(), 5) { // the loop ends early
		if entry.Number == 7 {
			break
		}
	}
	wantError(t, "read with a canceled context", func() error {
		for _, err := range j.Read(canceled(j.Context()), 1) {
			return err
		}
		return nil
	}(), context.Canceled)
}

func readEndsWhereItBegan(t *testing.T, j *journalUnderTest) {
	j.append(1, 5)
	next, last := uint64(6), uint64(0)
	for entry, err := range j.Read(j.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		last = entry.Number
		j.append(next, next) // a reader must not follow a writer forever
		next++
	}
	if last != 5 {
		t.Fatalf("read with 5 entries at its call: ended after entry %d, want 5", last)
	}
}

func aCanceledContextWritesNothing(t *testing.T, j *journalUnderTest) {
	j.append(1, 2)
	ctx := canceled(j.Context())
	err := j.Append(ctx, 3, batch(3))
	wantError(t, "append with a canceled context", err, context.Canceled)
	wantUsable(t, "append with a canceled context", err)
	j.wantLast(2)
	j.append(3, 3)
	j.wantEntries(1, 1, 3)
}

func aClosedJournalSaysSo(t *testing.T, j *journalUnderTest) {
	j.append(1, 3)
	j.save(2, []byte("state"))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	_, lastErr := j.Last(j.Context())
	_, _, snapshotErr := j.LatestSnapshot(j.Context())
	for doing, err := range map[string]error{
		"append":          j.Append(j.Context(), 4, batch(4)),
		"read":            j.readError(1),
		"last":            lastErr,
		"trim":            j.Trim(j.Context(), 2),
		"save snapshot":   j.SaveSnapshot(j.Context(), 3, writeAll(nil)),
		"latest snapshot": snapshotErr,
	} {
		wantError(t, doing+" after close", err, journal.ErrClosed)
	}
	j.open()
	j.wantEntries(1, 1, 3)
}

func twoWriters(t *testing.T, j *journalUnderTest) {
	j.append(1, 3)
	second, err := j.engine.Open(j.name)
	if j.engine.OneWriter {
		wantError(t, "second open", err, journal.ErrInUse)
		j.append(4, 4) // the first journal still works
		j.wantEntries(1, 1, 4)
		j.reopen()
		j.append(5, 5)
		return
	}
	if err != nil {
		t.Fatalf("second open: %v", err)
	}
	defer second.Close()
	if err := second.Append(j.Context(), 4, batch(4)); err != nil {
		t.Fatalf("append of the second writer: %v", err)
	}
	for _, next := range []uint64{4, 5} { // stale and plausible numbers alike; the first call of the first journal, and every later one
		err := j.Append(j.Context(), next, []byte("stale"))
		wantError(t, "append of the first writer", err, journal.ErrFenced)
		wantError(t, "append of the first writer", err, journal.ErrFailed)
	}
	if err := second.Append(j.Context(), 5, batch(5)); err != nil {
		t.Fatalf("append of the second writer: %v", err)
	}
	reader := &journalUnderTest{T: j.T, Journal: second, engine: j.engine, name: j.name}
	reader.wantEntries(1, 1, 5)
}
