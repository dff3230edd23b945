package access

import (
	"fmt"
	"slices"
	"strings"
)

// Role says what the holder of an access key may do. Which role may call which operation is decided by the front
// end that knows the operations.
type Role uint8

// The roles. Their numbers are in the journal and never change.
const (
	NoRole   Role = iota // the zero value, which no key has: a key without a role must not become an administrator
	Admin                // everything
	Backend              // a studio's own services: sessions and players of everyone, no fleets and keys
	Client               // a game client in players' hands: may be extracted and published, so it gets the least
	ReadOnly             // looks at everything, changes nothing
)

var roleNames = [...]string{Admin: "admin", Backend: "backend", Client: "client", ReadOnly: "readonly"}

// ParseRole reads the text form of a role.
func ParseRole(text string) (Role, error) {
	if i := slices.Index(roleNames[1:], text); i >= 0 {
		return Role(i + 1), nil
	}
	return NoRole, fmt.Errorf("role %q is unknown, want one of %s", text, strings.Join(roleNames[1:], ", "))
}

// Known reports whether r is one of the roles that a key can have.
func (r Role) Known() bool { return r != NoRole && int(r) < len(roleNames) }

func (r Role) String() string {
	if !r.Known() {
		return fmt.Sprintf("Role(%d)", uint8(r))
	}
	return roleNames[r]
}

// MarshalText refuses a role without a name, so that none can be written anywhere.
func (r Role) MarshalText() ([]byte, error) {
	if !r.Known() {
		return nil, fmt.Errorf("%s has no name", r)
	}
	return []byte(r.String()), nil
}

// UnmarshalText reads what MarshalText writes.
func (r *Role) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRole(string(text))
	return err
}
