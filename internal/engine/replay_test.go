package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
	"github.com/musterhq/muster/internal/journal"
)

// written is a journal in memory that fails after its last entry, if there is an error.
type written struct {
	store
	entries []journal.Entry
	err     error
}

func (w *written) Read(ctx context.Context, from uint64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for _, entry := range w.entries[from-1:] {
			if ctx.Err() != nil {
				yield(journal.Entry{}, ctx.Err())
				return
			}
			reused := bytes.Clone(entry.Batch)
			if !yield(journal.Entry{Number: entry.Number, Batch: reused}, nil) {
				return
			}
			clear(reused) // what was decoded must not be in it
		}
		if w.err != nil {
			yield(journal.Entry{}, w.err)
		}
	}
}

// write fills a journal that takes several pieces, and returns the state after each of two of its entries.
func write(t *testing.T, entries, some int) (w *written, afterSome, afterAll []byte) {
	c := cell.New(cell.DefaultConfig())
	w = &written{}
	for n := range entries {
		env := &kernel.Env{Now: domain.Time(n), Number: uint64(n + 1)}
		for i := range 3 {
			tags := []fleet.Tag{{Key: "what", Value: strings.Repeat("x", 200)}}
			if _, err := c.Execute(&hosting.CreateLocation{Name: fmt.Sprintf("custom-%d-%d", n, i), Region: "us-east-1", Tags: tags}, env); err != nil {
				t.Fatal(err)
			}
		}
		w.entries = append(w.entries, journal.Entry{Number: env.Number, Batch: env.Batch})
		if n+1 == some {
			afterSome = saved(t, c)
		}
	}
	return w, afterSome, saved(t, c)
}

func saved(t *testing.T, c *cell.Cell) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := c.Freeze().Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReplay(t *testing.T) {
	const entries, some = 1000, 700
	w, afterSome, afterAll := write(t, entries, some)
	size := func(entries []journal.Entry) (bytes int64) {
		for _, entry := range entries {
			bytes += int64(len(entry.Batch))
		}
		return bytes
	}
	if size(w.entries) < 2*pieceBytes {
		t.Fatalf("the journal has %d bytes: it would be one piece", size(w.entries))
	}
	for until, want := range map[uint64][]byte{some: afterSome, entries: afterAll, entries + 7: afterAll} {
		c := cell.New(cell.DefaultConfig())
		last, bytesRead, err := replay(t.Context(), c, w, 0, until)
		if wantLast := min(until, entries); err != nil || last != wantLast || bytesRead != size(w.entries[:wantLast]) {
			t.Errorf("until %d: last %d, %d bytes, %v", until, last, bytesRead, err)
		}
		if !bytes.Equal(saved(t, c), want) {
			t.Errorf("until %d: another state", until)
		}
	}
}

// TestReplayErrors: the entries before the damage are applied, and the reader has ended.
func TestReplayErrors(t *testing.T) {
	const entries, some = 1000, 700
	w, afterSome, _ := write(t, entries, some)
	broken := errors.New("broken disk")
	cut := &written{entries: w.entries[:some], err: broken}
	unreadable := &written{entries: append(w.entries[:some:some], journal.Entry{Number: some + 1, Batch: []byte("x")})}
	unreadable.entries = append(unreadable.entries, w.entries[some+1:]...)
	for name, test := range map[string]struct {
		from *written
		want error
	}{"broken": {cut, broken}, "unreadable": {unreadable, wire.ErrMalformed}} {
		c := cell.New(cell.DefaultConfig())
		last, _, err := replay(t.Context(), c, test.from, 0, entries)
		if !errors.Is(err, test.want) || last != some {
			t.Errorf("%s: last %d, %v", name, last, err)
		}
		if !bytes.Equal(saved(t, c), afterSome) {
			t.Errorf("%s: another state", name)
		}
	}
}

func TestReplayIsCancelled(t *testing.T) {
	w, _, _ := write(t, 10, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := replay(ctx, cell.New(cell.DefaultConfig()), w, 0, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}
