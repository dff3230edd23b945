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

// MaxBatchBytes is the largest batch that an engine accepts. Groups of commands are some hundred KiB; a larger batch is a
// defect of the caller, and is refused before anything is written.
const MaxBatchBytes = 64 << 20

// Entry is one appended batch. Batch is valid only until the reader's loop gets the next entry.
type Entry struct {
	Number uint64 // 1 for the first; no number is left out
	Batch  []byte
}

// Journal is an open journal. One goroutine at a time appends; everything else may run beside it and beside each
// other.
//
// An error that is ErrFailed is final: how much of the last append is durable is unknown, so every later call fails
// with the first cause, and the only way to continue is to close the journal, open it again and read its entries. After any
// other error the journal goes on, and nothing was changed unless the method says so.
type Journal interface {
	// Append makes batch durable as entry number next, which must be the last number and one: anything else is
	// ErrOutOfOrder. When it returns nil the entry survives every crash. A ctx that is done at the call stops it before
	// anything is written; one that ends later may leave the outcome unknown, which is ErrFailed. If another writer
	// took over, the error is ErrFailed and ErrFenced: on one machine nothing was written, in a cluster the error says if that is unknown.
	// The batch stays the caller's.
	Append(ctx context.Context, next uint64, batch []byte) error

	// Read returns the durable entries from number from on, up to those that were durable at the call. A number that was
	// trimmed is ErrTrimmed; from 0 means the oldest there is. A damaged entry is *Damaged, never left out. After an
	// error the sequence ends.
	Read(ctx context.Context, from uint64) iter.Seq2[Entry, error]

	// SaveSnapshot stores the output of write as the state after entry at, which must be durable and not older than the
	// latest snapshot: anything else is ErrOutOfOrder. The snapshot becomes the latest as a whole, once it is durable;
	// until then the previous one stays. One save runs at a time. Its errors, such as a full disk, leave the journal usable; after
	// an error the latest snapshot is the previous one, or the complete new one if only the outcome of the last step is unknown.
	SaveSnapshot(ctx context.Context, at uint64, write func(io.Writer) error) error

	// LatestSnapshot returns the latest snapshot and the entry it was taken after, or 0 and a nil reader when there is
	// none. Reading a damaged snapshot ends in *Damaged. The caller closes the reader.
	LatestSnapshot(ctx context.Context) (at uint64, r io.ReadCloser, err error)

	// Trim removes the entries with numbers below before. Entries that no snapshot includes cannot be trimmed: ErrOutOfOrder.
	Trim(ctx context.Context, before uint64) error

	// Last is the number of the last durable entry, 0 when none was ever appended.
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
	// ErrOutOfOrder: the number does not fit; nothing was written.
	ErrOutOfOrder = errors.New("journal entry out of order")
	// ErrTrimmed: the entry was there and has been trimmed.
	ErrTrimmed = errors.New("journal entry was trimmed")
	// ErrInUse: the journal is open elsewhere and its engine allows one at a time.
	ErrInUse = errors.New("journal is in use")
	// ErrClosed: the journal was closed by its owner.
	ErrClosed = errors.New("journal is closed")
)

// Damaged is the error of a durable entry or snapshot that cannot be read, with its place. To continue without it would produce a state that
// never existed.
type Damaged struct {
	Entry uint64 // number of the entry; 0 when the place is not within one entry
	File  string // file and position, or table and key; empty when the engine knows none
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
