package domain

import (
	"strings"

	"github.com/google/uuid"
)

// UUID is the random part of an identifier that the service creates; see ID. The core never generates one itself; it
// comes with the command.
type UUID uuid.UUID

// IsZero reports whether u was never set.
func (u UUID) IsZero() bool { return u == UUID{} }

// String returns the usual form, 8-4-4-4-12 lower-case hexadecimal digits.
func (u UUID) String() string { return uuid.UUID(u).String() }

// ParseUUID parses the usual form, in lower case only, because other code compares identifiers of the service as text.
func ParseUUID(s string) (UUID, bool) {
	if len(s) != 36 || strings.ToLower(s) != s { // uuid.Parse also accepts braces, a URN prefix, no dashes, and upper case
		return UUID{}, false
	}
	u, err := uuid.Parse(s)
	return UUID(u), err == nil
}
