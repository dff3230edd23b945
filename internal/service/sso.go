package service

import (
	"context"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/domain/access"
	domainpeople "github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/people"
	"github.com/musterhq/muster/internal/sso"
)

// newSSO returns the door of sign-in clients, which serves people who have signed in.
func (x *Service) newSSO(calls *callstats.Calls) *sso.Door {
	c := sso.Config{Engine: x.engine, People: signedIn{x.people}, Secret: x.secret, Private: x.private, Secure: x.transport.Secure, Proxies: x.proxies,
		Signins: x.signins.Door("sso"), Style: "/signin/static/people.css", Calls: calls, Log: x.log}
	if x.settings.PublicURL != "" {
		c.PublicURL = webURL(x.settings.PublicURL)
	}
	return sso.NewDoor(c)
}

// signedIn adapts the people who have signed in to the interface that sso needs.
type signedIn struct{ *people.Door }

var everyRole = []identity.Role{identity.Admin, identity.Backend, identity.Client, identity.ReadOnly}

func personOf(p people.Person) sso.Person {
	x := sso.Person{SignIn: p.SignIn, Name: p.Name, Holder: p.Holder(), Expires: p.Expires}
	for _, role := range everyRole {
		if p.Roles&access.Roles(role) != 0 {
			x.Roles = append(x.Roles, role)
		}
	}
	return x
}

func (s signedIn) Browser(r *http.Request) (sso.Person, bool) {
	p, ok := s.Door.Browser(r)
	return personOf(p), ok
}

func (s signedIn) Session(ctx context.Context, id string) (sso.Person, bool) {
	p, ok := s.Door.Session(ctx, id)
	return personOf(p), ok
}

func (s signedIn) End(ctx context.Context, by audit.Origin, id string, why sso.Cause) error {
	cause := domainpeople.SignedOut
	if why == sso.CodeTwice {
		cause = domainpeople.CodeTwice
	}
	return s.Door.End(audit.With(ctx, by), id, cause)
}

func (s signedIn) Issue(ctx context.Context, by audit.Origin, p *sso.Person, role identity.Role, valid time.Duration) (identity.Credentials, error) {
	own, ok := s.Door.Session(ctx, p.SignIn)
	if !ok {
		return identity.Credentials{}, people.ErrNoRole
	}
	return s.Door.Issue(ctx, by, &own, role, valid)
}
