// Package journal stores the source of truth of a cell: numbered batches of events, in order, durable, and snapshots that let old
// batches be removed. It stores bytes and does not know their meaning. Two engines implement it, one for a single machine
// (journal/pebble) and one for a cluster (journal/raft); journaltest holds both to the promises written here.
package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxBatchBytes is the largest batch that an engine accepts. Groups of commands are some hundred KiB; a larger batch is a bug of the caller
// and is refused before anything is written.
const MaxBatchBytes = 64 << 20

// Entry is one appended batch. Batch is valid only until the reader's loop gets the next entry.
type Entry struct {
	Number uint64 // the first entry has 1; there are no gaps
	Batch  []byte
}

// Journal is an open journal. Only one goroutine at a time may append; all other calls may run concurrently with appends and with each
// other.
//
// ErrFailed is final: it is unknown how much of the last append is durable, so every later call fails with the first cause. The only way to
// continue is to close the journal, open it again and read its entries. After any other error the journal remains usable, and nothing has
// changed unless the method says otherwise.
type Journal interface {
	// Append makes batch durable as entry number next, which must be one more than the last number; otherwise the error is ErrOutOfOrder.
	// When it returns nil, the entry survives every crash. If ctx is already done, nothing is written; if ctx ends later, the outcome may
	// be unknown, which is ErrFailed. If another writer took over, the error is both ErrFailed and ErrFenced: on one machine, nothing was
	// written; in a cluster, the error also reports whether that is unknown. The caller keeps ownership of batch.
	Append(ctx context.Context, next uint64, batch []byte) error

	// Read returns the durable entries from number `from` on, up to those that were durable at the call. For a trimmed number the error is
	// ErrTrimmed; from 0 starts with the oldest entry. A damaged entry is a *Damaged, and is never skipped. After an error the sequence
	// ends.
	Read(ctx context.Context, from uint64) iter.Seq2[Entry, error]

	// SaveSnapshot stores the output of write as the state after entry at, which must be durable and not older than the latest snapshot;
	// otherwise the error is ErrOutOfOrder. The snapshot replaces the previous one atomically, once it is durable. Only one save runs at a
	// time. Errors, such as a full disk, leave the journal usable. After an error, the latest snapshot is the previous one, or the complete
	// new one if only the outcome of the last step is unknown.
	SaveSnapshot(ctx context.Context, at uint64, write func(io.Writer) error) error

	// LatestSnapshot returns the latest snapshot and the entry after which it was taken, or 0 and a nil reader if there is none. Reading a
	// damaged snapshot ends in *Damaged. The caller closes the reader.
	LatestSnapshot(ctx context.Context) (at uint64, r io.ReadCloser, err error)

	// Trim removes the entries with numbers below before. It refuses to trim entries that no snapshot covers: ErrOutOfOrder.
	Trim(ctx context.Context, before uint64) error

	// Last returns the number of the last durable entry; 0 if none was ever appended.
	Last(ctx context.Context) (uint64, error)

	// Close releases the journal, so that it can be opened again. It waits for running calls; reads and saves fail with
	// ErrClosed at their next step.
	Close() error
}

var (
	// ErrFailed: the journal is no longer usable; the error contains the first cause.
	ErrFailed = errors.New("journal failed")
	// ErrFenced: another writer owns the journal now.
	ErrFenced = errors.New("another writer took over")
	// ErrOutOfOrder: the entry number is not the expected one; nothing was written.
	ErrOutOfOrder = errors.New("journal entry out of order")
	// ErrTrimmed: the entry existed but has been trimmed.
	ErrTrimmed = errors.New("journal entry was trimmed")
	// ErrInUse: the journal is open elsewhere and its engine allows one at a time.
	ErrInUse = errors.New("journal is in use")
	// ErrClosed: the journal was closed by its owner.
	ErrClosed = errors.New("journal is closed")
)

// Damaged is the error of a durable entry or snapshot that cannot be read, with its location. Continuing without it would produce a state
// that never existed.
type Damaged struct {
	Entry uint64 // number of the entry; 0 if the location is not within one entry
	File  string // file and position, or table and key; empty if the engine knows neither
	Tail  bool   // only the newest entries are lost; an engine may be able to continue without them
	Err   error  // the kind of damage
}

func (d *Damaged) Error() string {
	switch {
	case d.Entry == 0:
		return fmt.Sprintf("journal damaged: %s: %v", d.File, d.Err)
	case d.File == "":
		return fmt.Sprintf("journal damaged at entry %d: %v", d.Entry, d.Err)
	}
	return fmt.Sprintf("journal damaged at entry %d in %s: %v", d.Entry, d.File, d.Err)
}

func (d *Damaged) Unwrap() error { return d.Err }
