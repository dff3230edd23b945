package domain

import (
	"bytes"
	"fmt"
	"strings"
)

// ID is the identifier of a record that the service creates: a prefix and a UUID. K is the kind of record, so that the compiler does not
// let ids of different records be mixed up. The record's package names the type: type PartyID = domain.ID[partyKind]. The zero value means
// "no record".
type ID[K Kind] UUID

// Kind is a kind of record with ids. The type has no fields; only its method matters.
type Kind interface {
	// Prefix begins the text of every id of the kind.
	Prefix() string
}

// IsZero reports whether id names no record.
func (id ID[K]) IsZero() bool { return id == ID[K]{} }

// Less orders ids by their bytes, as their texts are ordered.
func (id ID[K]) Less(other ID[K]) bool { return bytes.Compare(id[:], other[:]) < 0 }

// String returns the prefix and the UUID, in one allocation.
func (id ID[K]) String() string {
	var k K
	b := append(make([]byte, 0, 64), k.Prefix()...)
	for i, x := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			b = append(b, '-')
		}
		const digits = "0123456789abcdef"
		b = append(b, digits[x>>4], digits[x&15])
	}
	return string(b)
}

// ParseID parses the text of an id: domain.ParseID[flow.PartyID](text). Errors name the expected form but do not repeat the input.
func ParseID[T interface{ ID[K] }, K Kind](text string) (T, error) {
	var k K
	if rest, ok := strings.CutPrefix(text, k.Prefix()); ok {
		if u, ok := ParseUUID(rest); ok {
			return T(u), nil
		}
	}
	return T{}, fmt.Errorf("want %s and a UUID", k.Prefix())
}

// Ids of records that packages refer to without importing each other.
type (
	PlayerSessionID = ID[playerSessionKind]
	TicketID        = ID[ticketKind]   // a party's ticket, as its players see it
	BackfillID      = ID[backfillKind] // a ticket of Game.EnterMatchmaking
)

type (
	playerSessionKind struct{}
	ticketKind        struct{}
	backfillKind      struct{}
)

func (playerSessionKind) Prefix() string { return "psess-" }
func (ticketKind) Prefix() string        { return "mm-" }
func (backfillKind) Prefix() string      { return "bf-" }
