package access

import (
	"fmt"
	"slices"
	"strings"
)

// Role determines what the holder of an access key may do. Each door decides which of its operations a role may call.
type Role uint8

// The numbers are in the journal and never change.
const (
	NoRole   Role = iota // zero value, which no key has, so that a missing role never means admin
	Admin                // everything
	Backend              // a studio's own services: all sessions and players, but no fleets or keys
	Client               // a game client, from which players may extract the key and publish it, so it has the fewest rights
	ReadOnly             // may read everything and change nothing
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

// Covers reports whether a role may do everything that another may.
func (r Role) Covers(other Role) bool {
	switch r {
	case Admin:
		return other.Known()
	case Backend:
		return other == Backend || other == Client || other == ReadOnly
	}
	return r.Known() && r == other
}

// MarshalText refuses an unknown role, so that none is ever stored.
func (r Role) MarshalText() ([]byte, error) {
	if !r.Known() {
		return nil, fmt.Errorf("%s has no name", r)
	}
	return []byte(r.String()), nil
}

func (r *Role) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRole(string(text))
	return err
}

// RoleSet is a set of roles. The bits are in the journal: the bit of a role is 1<<role.
type RoleSet uint8

// Roles returns a set of roles.
func Roles(all ...Role) (s RoleSet) {
	for _, r := range all {
		s |= 1 << r
	}
	return s
}

// Known reports whether the set contains only roles that a key can have.
func (s RoleSet) Known() bool { return s&^Roles(Admin, Backend, Client, ReadOnly) == 0 }

// Has reports whether a role is in the set.
func (s RoleSet) Has(r Role) bool { return s&(1<<r) != 0 }

// Covers reports whether one of the roles may do everything that another may.
func (s RoleSet) Covers(other Role) bool {
	for _, r := range s.List() {
		if r.Covers(other) {
			return true
		}
	}
	return false
}

// List returns the roles in the order of their numbers.
func (s RoleSet) List() (all []Role) {
	for r := Admin; r.Known(); r++ {
		if s.Has(r) {
			all = append(all, r)
		}
	}
	return all
}

func (s RoleSet) String() string {
	var names []string
	for _, r := range s.List() {
		names = append(names, r.String())
	}
	return strings.Join(names, ", ")
}
