// Package journaltest is the conformance suite of journals: Run tests every promise of journal.Journal on an engine, and Memory is a
// journal for simulations, with a disk that fails and crashes on demand. It is for tests only.
package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/journal"
)

// Engine is the engine that Run tests.
type Engine struct {
	// Open opens the journal called name, and creates it if it does not exist. The same name refers to the same journal, also after it was closed.
	Open func(name string) (journal.Journal, error)
	// OneWriter means that a second Open is refused while the first one holds the journal. Otherwise the second one takes over and fences the first.
	OneWriter bool
	// Within runs each test, for example synctest.Test for engines that wait for timeouts; nil: Run calls it directly.
	Within func(*testing.T, func(*testing.T))
}

// Run tests the engine's promises, each in a journal of its own.
func Run(t *testing.T, engine Engine) {
	for _, promise := range []struct {
		name string
		hold func(*testing.T, *journalUnderTest)
	}{
		{"EntriesComeBackInOrder", entriesComeBackInOrder},
		{"EntriesSurviveReopening", entriesSurviveReopening},
		{"GapsAreRefused", gapsAreRefused},
		{"TheBatchStaysTheCallers", theBatchStaysTheCallers},
		{"LargeAndEmptyBatches", largeAndEmptyBatches},
		{"ReadFromTheMiddle", readFromTheMiddle},
		{"ReadEndsWhereItBegan", readEndsWhereItBegan},
		{"ACanceledContextWritesNothing", aCanceledContextWritesNothing},
		{"SnapshotsComeBack", snapshotsComeBack},
		{"SnapshotsAreWholeOrAbsent", snapshotsAreWholeOrAbsent},
		{"SnapshotsFitTheEntries", snapshotsFitTheEntries},
		{"LargeSnapshots", largeSnapshots},
		{"Trim", trim},
		{"TrimKeepsWhatNoSnapshotHolds", trimKeepsWhatNoSnapshotHolds},
		{"TrimOfEverythingKeepsTheNumbers", trimOfEverythingKeepsTheNumbers},
		{"AppendsBesideSnapshotsReadsAndTrims", appendsBesideSnapshotsReadsAndTrims},
		{"AClosedJournalSaysSo", aClosedJournalSaysSo},
		{"TwoWriters", twoWriters},
	} {
		hold := func(t *testing.T) {
			j := &journalUnderTest{T: t, engine: engine, name: strings.ToLower(promise.name)}
			j.open()
			t.Cleanup(func() { _ = j.Journal.Close() })
			promise.hold(t, j)
		}
		t.Run(promise.name, func(t *testing.T) {
			if engine.Within == nil {
				hold(t)
				return
			}
			engine.Within(t, hold)
		})
	}
}

// journalUnderTest is an open journal with the checks that every test needs.
type journalUnderTest struct {
	*testing.T
	journal.Journal
	engine Engine
	name   string
}

func (j *journalUnderTest) open() {
	j.Helper()
	opened, err := j.engine.Open(j.name)
	if err != nil {
		j.Fatalf("open journal %s: %v", j.name, err)
	}
	j.Journal = opened
}

func (j *journalUnderTest) reopen() {
	j.Helper()
	if err := j.Journal.Close(); err != nil {
		j.Fatalf("close journal %s: %v", j.name, err)
	}
	j.open()
}

// batch returns the content of entry n in these tests: different for every entry, and of different lengths.
func batch(n uint64) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "entry %d;", n), 1+int(n%7))
}

func (j *journalUnderTest) append(from, to uint64) {
	j.Helper()
	for n := from; n <= to; n++ {
		if err := j.Append(j.Context(), n, batch(n)); err != nil {
			j.Fatalf("append entry %d: %v", n, err)
		}
	}
}

func (j *journalUnderTest) wantLast(want uint64) {
	j.Helper()
	if last, err := j.Last(j.Context()); err != nil || last != want {
		j.Fatalf("last entry: got %d and error %v, want %d", last, err, want)
	}
}

// wantEntries checks that reading from `from` gives exactly the entries first to last.
func (j *journalUnderTest) wantEntries(from, first, last uint64) {
	j.Helper()
	next := first
	for entry, err := range j.Read(j.Context(), from) {
		if err != nil {
			j.Fatalf("read from %d: at entry %d: %v", from, next, err)
		}
		if entry.Number != next || !bytes.Equal(entry.Batch, batch(next)) {
			j.Fatalf("read from %d: got entry %d with %q, want entry %d with %q", from, entry.Number, entry.Batch, next, batch(next))
		}
		next++
	}
	if next != last+1 {
		j.Fatalf("read from %d: ended before entry %d, want up to entry %d", from, next, last)
	}
}

func (j *journalUnderTest) readError(from uint64) error {
	for _, err := range j.Read(j.Context(), from) {
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *journalUnderTest) save(at uint64, payload []byte) {
	j.Helper()
	if err := j.SaveSnapshot(j.Context(), at, writeAll(payload)); err != nil {
		j.Fatalf("save snapshot after entry %d: %v", at, err)
	}
}

func writeAll(payload []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(payload)
		return err
	}
}

func (j *journalUnderTest) wantSnapshot(wantAt uint64, want []byte) {
	j.Helper()
	at, r, err := j.LatestSnapshot(j.Context())
	if err != nil {
		j.Fatalf("open latest snapshot: %v", err)
	}
	if r == nil {
		j.Fatalf("latest snapshot: none, want one after entry %d", wantAt)
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil || at != wantAt || !bytes.Equal(got, want) {
		j.Fatalf("latest snapshot: got %d bytes after entry %d and error %v, want %d bytes after entry %d",
			len(got), at, err, len(want), wantAt)
	}
}

func (j *journalUnderTest) wantNoSnapshot() {
	j.Helper()
	if at, r, err := j.LatestSnapshot(j.Context()); at != 0 || r != nil || err != nil {
		j.Fatalf("latest snapshot: got one after entry %d and error %v, want none", at, err)
	}
}

func wantError(t *testing.T, doing string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("%s: got error %v, want %v", doing, got, want)
	}
}

func wantUsable(t *testing.T, doing string, err error) {
	t.Helper()
	if err == nil || errors.Is(err, journal.ErrFailed) {
		t.Fatalf("%s: got error %v, want one that leaves the journal usable", doing, err)
	}
}

func canceled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
