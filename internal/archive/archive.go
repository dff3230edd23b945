// Package archive stores ended records: game sessions, player sessions, placements, tickets and the changes of players' keys, for as long as the API
// answers questions about them. Live records are in memory. An archive stores bytes under a few keys and does not interpret them. archivetest tests
// the promises below on every engine.
package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Kind is the kind of a record. The numbers are stored.
type Kind uint8

const (
	GameSession   Kind = 1
	PlayerSession Kind = 2
	Placement     Kind = 3
	Ticket        Kind = 4 // of matchmaking
	PlayerChange  Kind = 5 // one change of a player's keys; it ends when it happens
	AuditEntry    Kind = 6 // Ended is adjusted so that the entry expires after its own retention
)

// Record is one ended record.
type Record struct {
	Kind    Kind
	ID      string // unique in its kind
	Created int64  // Unix milliseconds
	Ended   int64  // Unix milliseconds
	// Index keys; a record is in no index whose key is empty.
	Fleet  string
	Group  string // the game session that a player session belongs to
	Player string
	Data   []byte
}

// Index is a key by which records can be listed. The numbers are stored.
type Index uint8

const (
	ByFleet  Index = 1
	ByGroup  Index = 2
	ByPlayer Index = 3
)

// Key returns the record's key in the index; "" if it is not in the index.
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

// Cursor is a position in a list: the records after it were created later, or at the same time with a greater id. The zero Cursor is before all
// records.
type Cursor struct {
	Created int64
	ID      string
}

// Cursor returns the record's own position.
func (r *Record) Cursor() Cursor { return Cursor{Created: r.Created, ID: r.ID} }

// Compare orders positions as lists do.
func (c Cursor) Compare(d Cursor) int {
	return cmp.Or(cmp.Compare(c.Created, d.Created), cmp.Compare(c.ID, d.ID))
}

// Archive is an open archive. All methods may be called concurrently. As with the journal, ErrFailed is final: close the archive, open it again, and
// repeat the Puts that were not acknowledged. After any other error nothing has changed.
type Archive interface {
	// Put makes all records durable; after an error, it is not certain that any is. A record replaces a stored one, or an earlier one in records,
	// with the same kind and id, so it is safe to repeat a Put. Large Puts are far cheaper than many small ones. A Put without records stores only
	// the mark. The caller keeps ownership of the slices.
	Put(ctx context.Context, records []Record) error

	// SetMark sets the mark that further Puts store atomically with their records.
	SetMark(m Mark)

	// Mark returns the mark of the last durable Put; ok is false if none has stored one.
	Mark() (m Mark, ok bool, err error)

	// Get returns the record, or false if there is none.
	Get(ctx context.Context, kind Kind, id string) (Record, bool, error)

	// List returns at most limit records of a kind with that key in the index, in ascending order of (Created, ID), starting after `after`. Fewer
	// than limit records mean the end of the list. If some cannot be read, it returns the others and a *Damaged.
	List(ctx context.Context, kind Kind, index Index, key string, after Cursor, limit int) ([]Record, error)

	// Expire removes up to about limit records that ended before endedBefore (Unix milliseconds), oldest first. It returns how many it removed; 0
	// means that none is left. A record may stay up to Grain longer. Records that a crash restores expire again; records that cannot be read stay.
	Expire(ctx context.Context, endedBefore int64, limit int) (removed int, err error)

	// Coverage returns what SetCoverage or Add stored last; ok is false if nothing was stored.
	Coverage() (c Coverage, ok bool, err error)

	// SetCoverage makes c durable.
	SetCoverage(ctx context.Context, c Coverage) error

	// Page returns the records after a place, for another archive that lacks them: about bytesMax, or fewer to limit the time. All records that ended
	// before Next.Ended less Grain have been returned or were before the first place; after the last page, all records. A record may be returned
	// twice. A replaced record is not returned.
	Page(ctx context.Context, behind Place, bytesMax int) (Page, error)

	// Add is Put for records from another archive, with a coverage that becomes durable atomically. It skips a record if the stored record of its
	// kind and id is the same or ended later. It returns how many were stored.
	Add(ctx context.Context, records []Record, c Coverage) (added int, err error)

	// Close releases the archive, so that it can be opened again. It waits for running calls.
	Close() error
}

// Coverage tells which of the records that have left memory a node's archive contains. Other nodes may have the missing ones.
type Coverage struct {
	Entry uint64 // the archive contains records that left memory up to this journal entry
	Next  int64  // records that leave memory after Entry ended at this time or later; Unix milliseconds
	Lacks bool   // some records up to Entry that ended at From or later are missing
	From  int64
}

// Place is a position among the records of one archive. With an empty At, it is before all records that ended at Ended or later, in every archive.
type Place struct {
	Ended int64
	At    string // meaningful only to the archive that made it
}

// Page is a batch of an archive's records.
type Page struct {
	Records []Record
	Next    Place // the place after the last record
	More    bool
	Damaged int // places that could not be read, each with at least one record
}

// Mark records the progress of the journal and the state when the archive was last written. It reveals an archive that was replaced by an older one,
// and a journal that has lost its end.
type Mark struct {
	Journal   uint64 // number of a durable journal entry
	Forgotten uint64 // number of records put into the archive so that they could leave memory, as counted by its owner
}

// Grain is how much longer than requested a record may stay, in milliseconds, so that an engine can expire records with similar ends together.
const Grain = 60_000

// Limits of a record, so that data chosen by clients cannot grow without bound. Every record of the API is within them: its longest key is the id of a
// player, with 1,024 characters.
const (
	MaxKeyBytes  = 1024 * utf8.UTFMax
	MaxDataBytes = 4 << 20
)

var (
	// ErrFailed: the archive is no longer usable; the error contains the first cause.
	ErrFailed = errors.New("archive failed")
	// ErrInvalid: the record or the arguments are invalid; nothing was written.
	ErrInvalid = errors.New("not accepted by the archive")
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
