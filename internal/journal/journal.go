// Package journal is the truth of a cell: numbered batches of events, in order, durable, and snapshots that let old
// batches go. It stores bytes and does not know what they mean. Two engines stand behind it, one for a single machine
// (journal/pebble) and one for a cluster; journaltest holds both to the promises written here.
package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxBatchBytes is the largest batch that an engine takes. Groups of commands are some hundred KiB; what is larger is a
// bug above, and is refused before anything is written.
const MaxBatchBytes = 64 << 20

// Entry is one appended batch. Batch belongs to the reader only until its loop asks for the next entry.
type Entry struct {
	Number uint64 // 1 for the first; no number is left out
	Batch  []byte
}

// Journal is an open journal. One goroutine at a time appends; everything else may run beside it and beside each
// other.
//
// An error that is ErrFailed is final: nobody knows what of the last append is durable, so every later call fails
// with the first cause, and the only way on is to close the journal, open it again and read what is there. After any
// other error the journal goes on, and nothing was changed unless the method says so.
type Journal interface {
	// Append makes batch durable as entry number next, which must be the last number and one: anything else is
	// ErrOutOfOrder. When it returns nil the entry survives every crash. A ctx that is done at the call stops it before
	// anything is written; one that ends later may leave the outcome unknown, which is ErrFailed. If another writer
	// took over, the error is ErrFailed and ErrFenced and nothing was written. The batch stays the caller's.
	Append(ctx context.Context, next uint64, batch []byte) error

	// Read returns the durable entries from number from on, up to those that were durable at the call. A number that was
	// trimmed is ErrTrimmed; from 0 means the oldest there is. A damaged entry is *Damaged, never left out. After an
	// error the sequence ends.
	Read(ctx context.Context, from uint64) iter.Seq2[Entry, error]

	// SaveSnapshot stores what write writes as the state after entry at, which must be durable and not older than the
	// latest snapshot: anything else is ErrOutOfOrder. The snapshot becomes the latest as a whole, once it is durable;
	// until then the one before it stays. One at a time. Its errors leave the journal usable, disk full among them; after
	// one the latest is the one before, or the new one, whole, when only the last step's outcome is unknown.
	SaveSnapshot(ctx context.Context, at uint64, write func(io.Writer) error) error

	// LatestSnapshot returns the latest snapshot and the entry it was taken after, or 0 and a nil reader when there is
	// none. Reading a damaged one ends in *Damaged. The caller closes the reader.
	LatestSnapshot(ctx context.Context) (at uint64, r io.ReadCloser, err error)

	// Trim forgets the entries with numbers below before. What no snapshot holds cannot be trimmed: ErrOutOfOrder.
	Trim(ctx context.Context, before uint64) error

	// Last is the number of the last durable entry, 0 when none was ever appended.
	Last(ctx context.Context) (uint64, error)

	// Close gives the journal to the next one who opens it. It waits for what is under way; reads and saves meet
	// ErrClosed at their next step.
	Close() error
}

var (
	// ErrFailed: the journal is no longer usable; the error says the first cause.
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

// Damaged says that something durable cannot be read back, and where. Going on without it would mean a state that
// never was.
type Damaged struct {
	Entry uint64 // number of the entry; 0 when the place is not within one entry
	File  string // file and position, or table and key; empty when the engine knows none
	Tail  bool   // only the newest entries are lost; an engine may be able to go on without them
	Err   error  // what is wrong there
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
