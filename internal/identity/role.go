package identity

import (
	"fmt"
	"slices"
	"strings"
)

// Role says what the holder of an access key may do. Which role may call which operation is decided by the front
// end that knows the operations.
type Role uint8

const (
	NoRole   Role = iota // the zero value, held by nobody: a key without a role must not become an administrator
	Admin                // everything
	Backend              // a studio's own services: sessions and players of everyone, no fleets and keys
	Client               // a game client in players' hands: may be extracted and published, so it gets the least
	ReadOnly             // looks at everything, changes nothing
)

var roleNames = [...]string{Admin: "admin", Backend: "backend", Client: "client", ReadOnly: "readonly"}

// ParseRole reads the text form that flags and the key file use.
func ParseRole(text string) (Role, error) {
	if i := slices.Index(roleNames[1:], text); i >= 0 {
		return Role(i + 1), nil
	}
	return NoRole, fmt.Errorf("role %q is unknown, want one of %s", text, strings.Join(roleNames[1:], ", "))
}

func (r Role) String() string {
	if r == NoRole || int(r) >= len(roleNames) {
		return fmt.Sprintf("Role(%d)", uint8(r))
	}
	return roleNames[r]
}

// MarshalText refuses a role without a name, so that none can be written to the key file.
func (r Role) MarshalText() ([]byte, error) {
	if _, err := ParseRole(r.String()); err != nil {
		return nil, err
	}
	return []byte(r.String()), nil
}

func (r *Role) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRole(string(text))
	return err
}
