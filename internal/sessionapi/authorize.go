package sessionapi

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/signin"
)

// authorize returns the principal of a call, and refuses roles without the right. A script cannot sign requests like AWS clients, so it
// presents its access key: "Bearer KEYID.SECRET", or Basic with the two as user and password.
func (d *Door) authorize(r *http.Request, may identity.Roles, what string) (*identity.Principal, *Problem) {
	by, problem := d.identify(r)
	if problem != nil {
		return nil, problem
	}
	connlimit.Prove(r.Context())
	by.Used(what)
	if !may.Allow(by.Role) {
		return nil, &Problem{status: http.StatusForbidden, Name: accessDenied,
			Message: fmt.Sprintf("access key %s has the role %s, which may not call %s", by.ID, by.Role, what)}
	}
	return by, nil
}

// identify returns the principal of a call.
func (d *Door) identify(r *http.Request) (*identity.Principal, *Problem) {
	id, secret, problem := credentials(r)
	from := d.config.Proxies.Of(r)
	if d.config.Dev {
		by := identity.Principal{ID: id, Role: identity.Admin, Address: from}
		if key, err := d.config.Keys.With(id, "", from); err == nil {
			by = key.Principal(from) // so that roles and policies can be tested
		}
		return &by, nil
	}
	if problem != nil {
		d.config.Signins.Fail(signin.Failure{From: from, Reason: unreadable(r)})
		return nil, problem
	}
	key, err := d.config.Signins.Proven(d.config.Keys, from, id, secret)
	if slow, ok := errors.AsType[*signin.Slowed](err); ok {
		return nil, &Problem{status: http.StatusTooManyRequests, retry: slow.Seconds(), Name: tooManySignIns, Message: slow.Error()}
	}
	if err != nil {
		return nil, unauthorized(err.Error())
	}
	if key.Role != identity.Client && !d.config.Private(r) {
		// A client key is in every copy of the game, so others on the network may read it. Any other key is a secret.
		return nil, &Problem{status: http.StatusForbidden, Name: accessDenied, Message: fmt.Sprintf(
			"access key %s has the role %s and was sent without TLS, so others on the network may have read it: revoke it, and use https, or a key of the role client", key.ID, key.Role)}
	}
	by := key.Principal(from)
	return &by, nil
}

func credentials(r *http.Request) (id, secret string, problem *Problem) {
	if r.Header.Get("Authorization") == "" {
		return "", "", unauthorized("the Authorization header is missing; want Bearer KEYID.SECRET, or Basic with both")
	}
	id, secret, ok := identity.Shown(r)
	if !ok {
		return "", "", unauthorized("the Authorization header is malformed; want Bearer KEYID.SECRET, or Basic with both")
	}
	return id, secret, nil
}

func unreadable(r *http.Request) signin.Reason {
	if r.Header.Get("Authorization") == "" {
		return signin.Missing
	}
	return signin.Malformed
}

func unauthorized(message string) *Problem {
	return &Problem{status: http.StatusUnauthorized, Name: notAuthorized, Message: message}
}

// clientOf returns the name of the caller's event stream.
func clientOf(r *http.Request) (string, *Problem) {
	const header = "X-Client-Id"
	name := r.Header.Get(header)
	if name == "" {
		name = r.URL.Query().Get("clientId") // for clients that cannot set a header on an event stream
	}
	if name != "" && !clientForm.MatchString(name) {
		return "", invalid(header, name, "1 to 64 letters, digits, dots, dashes and underscores")
	}
	return name, nil
}
