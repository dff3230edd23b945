package sso

import (
	"context"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/identity"
)

// Person is a person who has signed in.
type Person struct {
	SignIn  string // id of the sign-in session
	Name    string // for people to read
	Holder  string // the person's name in records
	Roles   []identity.Role
	Expires time.Time // of the session, unless it is ended earlier
}

// People knows who has signed in. All methods except SignIn are safe for concurrent use and notice the end of a session at once.
type People interface {
	// Browser returns the person whom a browser has signed in.
	Browser(r *http.Request) (Person, bool)
	// SignIn shows a browser the sign-in page, which leads back to a path of this service.
	SignIn(w http.ResponseWriter, r *http.Request, back string)
	// OwnPage reports whether a form was sent from a page of this service.
	OwnPage(r *http.Request) bool
	// Session returns the person of a session that has not ended, with the person's current roles.
	Session(ctx context.Context, id string) (Person, bool)
	// End ends a session because its person signs out, or because a code of it was used twice. When it returns, the session's tokens and credentials
	// no longer work at this node; soon after, they work at no other.
	End(ctx context.Context, by audit.Origin, id string, why Cause) error
	// Issue issues temporary credentials of a role to a person. They end with the session.
	Issue(ctx context.Context, by audit.Origin, p *Person, role identity.Role, valid time.Duration) (identity.Credentials, error)
}

// Cause says why a session ends.
type Cause uint8

// Causes.
const (
	SignedOut Cause = iota // by the person
	CodeTwice              // a code of the session was used twice, so it was stolen
)

// OwnRole stands for the person's role with the most rights, for profiles that name no role. No list of roles contains it.
const OwnRole = "own"

// offered are the roles that a person can take, those with the most rights first. The role client is not among them: its keys are for games, whatever
// is created with such a key belongs to it, and people do not sign in to play.
var offered = []identity.Role{identity.Admin, identity.Backend, identity.ReadOnly}

// rolesOf returns the roles that a person can take: the person's roles and those below them.
func rolesOf(p *Person) (all []identity.Role) {
	for _, role := range offered {
		if mayTake(p, role) {
			all = append(all, role)
		}
	}
	return all
}

// roleNamed returns the role with a name, if a person can take it.
func roleNamed(p *Person, name string) (role identity.Role, ok bool) {
	if all := rolesOf(p); name == OwnRole && len(all) > 0 {
		return all[0], true
	}
	return role, role.UnmarshalText([]byte(name)) == nil && mayTake(p, role)
}

func mayTake(p *Person, role identity.Role) bool {
	if role == identity.Client {
		return false
	}
	for _, own := range p.Roles {
		if own.Covers(role) {
			return true
		}
	}
	return false
}
