package sso

import (
	"context"
	"net/http"
	"time"

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
	// End ends a session. When it returns, its tokens and credentials work no more at this node, and soon at no other.
	End(ctx context.Context, id string) error
	// Issue makes temporary credentials of a role for a person, which end with the session.
	Issue(ctx context.Context, p *Person, role identity.Role, valid time.Duration) (identity.Credentials, error)
}

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
