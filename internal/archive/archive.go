// Package archive keeps what has ended: game sessions and player sessions, later tickets and placements, for as long as
// the API promises to describe them. It stores bytes and does not know what they mean; archivetest holds its engines to
// the promises written here.
package archive

import "context"

// Kind tells the records apart. The numbers are stored: they are never changed and never reused.
type Kind uint8

// The kinds.
const (
	GameSession   Kind = 1
	PlayerSession Kind = 2
)

// Record is something that has ended.
type Record struct {
	Kind                 Kind
	ID                   string // unique in its kind
	Created, Ended       int64  // Unix milliseconds
	Fleet, Group, Player string // index keys, may be empty; Group is the game session a player session belongs to
	Data                 []byte
}

// Index is a way to list records.
type Index uint8

// The indexes. The numbers are stored: they are never changed and never reused.
const (
	ByFleet  Index = 1
	ByGroup  Index = 2
	ByPlayer Index = 3
)

// Cursor is a place in the order of a list; the zero Cursor is before the first record.
type Cursor struct {
	Created int64
	ID      string
}

// Archive is an open archive. Its methods may be called beside each other.
type Archive interface {
	// Put stores records; they are durable when it returns. A record whose ID is there already replaces it.
	Put(ctx context.Context, records []Record) error
	// Get finds a record.
	Get(ctx context.Context, kind Kind, id string) (Record, bool, error)
	// List returns up to limit records of an index key behind after, ascending by (Created, ID).
	List(ctx context.Context, kind Kind, index Index, key string, after Cursor, limit int) ([]Record, error)
	// Expire removes up to limit records that ended before a time, in Unix milliseconds, and returns how many.
	Expire(ctx context.Context, endedBefore int64, limit int) (int, error)
	// Close ends the use of the archive.
	Close() error
}
