package sessionapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/signin"
)

// caller is who asks.
type caller struct {
	keyID   string
	role    identity.Role
	address string
	life    context.Context // of the access key; nil with --dev
}

// maker is what the core knows of the caller.
func (c caller) maker() domain.Maker { return domain.Maker(identity.MakerOf(c.keyID, c.role)) }

// access is the set of roles that may call a node.
type access uint8

const (
	play     access = 1<<identity.Admin | 1<<identity.Backend | 1<<identity.Client
	playLook        = play | 1<<identity.ReadOnly
)

func (a access) allows(role identity.Role) bool { return a&(1<<role) != 0 }

// authorize tells who asks, and whether its role may. A script cannot sign requests as the AWS clients do, so it shows its
// access key: "Bearer KEYID.SECRET", or Basic with the two as user and password.
func (d *Door) authorize(r *http.Request, a access, what string) (caller, *Problem) {
	who, problem := d.identify(r)
	if problem != nil {
		return who, problem
	}
	connlimit.Prove(r.Context())
	return who, denied(who, a, what)
}

// identify tells who asks.
func (d *Door) identify(r *http.Request) (caller, *Problem) {
	id, secret, problem := credentials(r)
	if d.config.Dev {
		who := caller{keyID: id, role: identity.Admin, address: d.config.Proxies.Of(r)}
		if key, ok := d.config.Keys.Find(id); ok {
			who.role = key.Role // so that roles can be tried out
		}
		return who, nil
	}
	from := d.config.Proxies.Of(r)
	if problem != nil {
		d.config.Signins.Fail(signin.Failure{From: from, Reason: unreadable(r)})
		return caller{}, problem
	}
	key, err := d.config.Signins.Proven(d.config.Keys, from, id, secret)
	if slow, ok := errors.AsType[*signin.Slowed](err); ok {
		return caller{}, &Problem{status: http.StatusTooManyRequests, retry: slow.Seconds(), Name: tooManySignIns, Message: slow.Error()}
	}
	if err != nil {
		return caller{}, unauthorized(err.Error())
	}
	who := caller{keyID: key.ID, role: key.Role, address: from, life: key.Life()}
	if key.Role != identity.Client && !d.config.Private(r) {
		// A client key is in every copy of the game, so nothing is lost when somebody listens. Any other one is a secret.
		return caller{}, &Problem{status: http.StatusForbidden, Name: accessDenied, Message: fmt.Sprintf(
			"access key %s has the role %s and was sent without TLS: whoever listens has it now; use https, or a key of the role client", key.ID, key.Role)}
	}
	return who, nil
}

func denied(who caller, a access, what string) *Problem {
	if a.allows(who.role) {
		return nil
	}
	return &Problem{status: http.StatusForbidden, Name: accessDenied,
		Message: fmt.Sprintf("access key %s has the role %s, which may not call %s", who.keyID, who.role, what)}
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

// clientOf is the name of the caller's event stream.
func clientOf(r *http.Request) (string, *Problem) {
	const header = "X-Client-Id"
	name := r.Header.Get(header)
	if name == "" {
		name = r.URL.Query().Get("clientId") // for those who cannot set a header on an event stream
	}
	if name != "" && !clientForm.MatchString(name) {
		return "", invalid(header, name, "1 to 64 letters, digits, dots, dashes and underscores")
	}
	return name, nil
}
