// Package archive stores ended records: game sessions, player sessions, placements and tickets, and the changes of
// players' keys, for the time that the API still answers about them. A live record is in memory,
// an ended one here. It stores bytes under a few keys and does not know their meaning. archivetest tests on every engine
// the promises written here.
package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// Kind is the kind of a record. The numbers are stored.
type Kind uint8

const (
	GameSession   Kind = 1
	PlayerSession Kind = 2
	Placement     Kind = 3
	Ticket        Kind = 4 // of matchmaking
	PlayerChange  Kind = 5 // one change of a player's keys; it ends when it happens
	AuditEntry    Kind = 6 // Ended is such that it expires when its own time is over
)

// Record is one ended record.
type Record struct {
	Kind    Kind
	ID      string // unique in its kind
	Created int64  // Unix milliseconds
	Ended   int64  // Unix milliseconds
	// Index keys; an empty one is in no index.
	Fleet  string
	Group  string // the game session that a player session belongs to
	Player string
	Data   []byte
}

// Index is a key to list by. The numbers are stored.
type Index uint8

const (
	ByFleet  Index = 1
	ByGroup  Index = 2
	ByPlayer Index = 3
)

// Key is the record's key in the index, "" when it is not in it.
func (r *Record) Key(index Index) string {
	switch index {
	case ByFleet:
		return r.Fleet
	case ByGroup:
		return r.Group
	case ByPlayer:
		return r.Player
	}
	return ""
}

// Cursor is a position in a list: what follows has a later creation, or the same and a greater id.
// The zero Cursor is before everything.
type Cursor struct {
	Created int64
	ID      string
}

// Cursor is the position of the record itself.
func (r *Record) Cursor() Cursor { return Cursor{Created: r.Created, ID: r.ID} }

// Compare orders positions as lists do.
func (c Cursor) Compare(d Cursor) int {
	return cmp.Or(cmp.Compare(c.Created, d.Created), cmp.Compare(c.ID, d.ID))
}

// Archive is an open archive. All methods may be called at the same time. An error that is ErrFailed is final, as with
// the journal: close it, open it again, and put again what was not acknowledged. After any other error nothing changed.
type Archive interface {
	// Put makes the records durable, all of them or, after an error, none for certain. A record with the kind and id of a
	// stored one, or of an earlier one in records, replaces it, so it is safe to put a record again that may be stored. Large Puts
	// are far cheaper than many small ones. A Put without records stores the mark alone. The slices stay the caller's.
	Put(ctx context.Context, records []Record) error

	// SetMark sets the mark that Puts store from now on beside their records, in the same step.
	SetMark(m Mark)

	// Mark is the mark of the last durable Put; not ok when none has stored one.
	Mark() (m Mark, ok bool, err error)

	// Get returns the record, or false when there is none.
	Get(ctx context.Context, kind Kind, id string) (Record, bool, error)

	// List returns at most limit records of a kind with that key in the index, ascending by (Created, ID), from behind
	// after on. Fewer than limit means the end. When some of them cannot be read, it returns the others and a *Damaged.
	List(ctx context.Context, kind Kind, index Index, key string, after Cursor, limit int) ([]Record, error)

	// Expire removes at most about limit records that ended before endedBefore (Unix milliseconds), oldest first, and
	// returns how many; 0 means that none is left. A record may stay up to Grain longer. What a crash brings back
	// expires again; records that cannot be read stay.
	Expire(ctx context.Context, endedBefore int64, limit int) (removed int, err error)

	// Coverage is what SetCoverage or Add stored last; not ok when none has stored any.
	Coverage() (c Coverage, ok bool, err error)

	// SetCoverage makes c durable.
	SetCoverage(ctx context.Context, c Coverage) error

	// Page returns records behind a place, for an archive that lacks them: about bytesMax, or fewer so that it does not take long. Until the last page, all
	// records of the archive that ended before Next.Ended less Grain were returned or were before the first place. A record may come
	// twice. One that another has replaced does not come.
	Page(ctx context.Context, behind Place, bytesMax int) (Page, error)

	// Add is Put of records from another archive, with a coverage that becomes durable in the same step. A record that ended before the one that is stored
	// under its kind and id, or is that one, changes nothing. It returns how many were stored.
	Add(ctx context.Context, records []Record, c Coverage) (added int, err error)

	// Close releases the archive, so that it can be opened again. It waits for running calls.
	Close() error
}

// Coverage says which records the archive of a node has, of those that have left memory. Other nodes have them as well.
type Coverage struct {
	Entry uint64 // it has those that left memory up to this journal entry
	Next  int64  // those that leave memory behind Entry ended at this time or later; Unix milliseconds
	Lacks bool   // some of those up to Entry are missing, which ended at From or later
	From  int64
}

// Place is a place among the records of one archive. One without At is before all records that ended at Ended or later, in every archive.
type Place struct {
	Ended int64
	At    string // for the archive that made it
}

// Page is some records of an archive.
type Page struct {
	Records []Record
	Next    Place // behind them
	More    bool
	Damaged int // places that could not be read, each with one record or more
}

// Mark records the progress of the journal and the state when the archive was last written. It reveals an archive that was exchanged for an older one, and
// a journal that has lost its end.
type Mark struct {
	Journal   uint64 // number of a durable journal entry
	Forgotten uint64 // records that the archive had received to let them leave memory, counted by its owner
}

// Grain is how much longer than requested a record may stay, in milliseconds, so that an engine may expire
// neighbours in time together.
const Grain = 60_000

// Limits of a record, so that nothing that clients choose can grow without bound. Ids and keys of the API are shorter.
const (
	MaxKeyBytes  = 2 << 10
	MaxDataBytes = 4 << 20
)

var (
	// ErrFailed: the archive is no longer usable; the error contains the first cause.
	ErrFailed = errors.New("archive failed")
	// ErrInvalid: the record or the arguments are invalid; nothing was written.
	ErrInvalid = errors.New("not acceptable to the archive")
	// ErrInUse: the archive is open elsewhere.
	ErrInUse = errors.New("archive is in use")
	// ErrClosed: the archive was closed by its owner.
	ErrClosed = errors.New("archive is closed")
)

// Damaged is the error of a stored record that cannot be read, with its place.
type Damaged struct {
	Place string
	Err   error
}

func (d *Damaged) Error() string { return fmt.Sprintf("archive damaged: %s: %v", d.Place, d.Err) }
func (d *Damaged) Unwrap() error { return d.Err }

// Check returns why a record cannot be stored, or nil.
func (r *Record) Check() error {
	switch {
	case r.Kind == 0:
		return fmt.Errorf("%w: record %q: kind is 0", ErrInvalid, r.ID)
	case r.ID == "":
		return fmt.Errorf("%w: record of kind %d: ID is empty", ErrInvalid, r.Kind)
	case r.Created < 0 || r.Ended < 0:
		return fmt.Errorf("%w: record %q: created at %d, ended at %d: neither may be before 1970", ErrInvalid, r.ID, r.Created, r.Ended)
	case len(r.Data) > MaxDataBytes:
		return fmt.Errorf("%w: record %q: %d bytes of data, at most %d allowed", ErrInvalid, r.ID, len(r.Data), MaxDataBytes)
	}
	for _, key := range []struct{ name, value string }{{"ID", r.ID}, {"fleet", r.Fleet}, {"group", r.Group}, {"player", r.Player}} {
		if len(key.value) > MaxKeyBytes {
			return fmt.Errorf("%w: record %.100q: %s of %d bytes, at most %d allowed", ErrInvalid, r.ID, key.name, len(key.value), MaxKeyBytes)
		}
	}
	return nil
}
