package sso

import (
	"context"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/identity"
)

// Person is somebody who has signed in.
type Person struct {
	SignIn  string // id of the sign-in session
	Name    string // for people to read
	Holder  string // names the person in records
	Roles   []identity.Role
	Expires time.Time // of the session, unless it ends before
}

// People knows who has signed in. All but SignIn may be called by any number of goroutines, and notice the end of a session at once.
type People interface {
	// Browser returns the person whom a browser has signed in.
	Browser(r *http.Request) (Person, bool)
	// SignIn answers a browser with the page for signing in, which leads back to a path of this service.
	SignIn(w http.ResponseWriter, r *http.Request, back string)
	// OwnPage reports whether a page of this service has sent a form.
	OwnPage(r *http.Request) bool
	// Session returns the person of a sign-in session that goes on, with the roles that the person has now.
	Session(ctx context.Context, id string) (Person, bool)
	// End ends a session, because its person signs out, or because a code of it came twice. When it returns, its tokens and credentials work no more at this node, and soon at
	// no other.
	End(ctx context.Context, by audit.Origin, id string, why Cause) error
	// Issue makes temporary credentials of a role for a person, which end with the session.
	Issue(ctx context.Context, by audit.Origin, p *Person, role identity.Role, valid time.Duration) (identity.Credentials, error)
}

// Cause is why a session ends.
type Cause uint8

// The causes.
const (
	SignedOut Cause = iota // by the person
	CodeTwice              // a code of the session was used twice: somebody has stolen it
)

// OwnRole stands for the role with the most rights that a person has, for profiles that name none. It is on no list of roles.
const OwnRole = "own"

// offered are the roles that a person can take, the one with the most rights first. Keys of the role client are for games: what is made with one belongs to it, and
// nobody signs in to play.
var offered = []identity.Role{identity.Admin, identity.Backend, identity.ReadOnly}

// rolesOf returns the roles that a person can take: those that the person has, and those below them.
func rolesOf(p *Person) (all []identity.Role) {
	for _, role := range offered {
		if mayTake(p, role) {
			all = append(all, role)
		}
	}
	return all
}

// roleNamed returns the role of a name, if a person can take it.
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
