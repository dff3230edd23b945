package sessionapi

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/musterhq/muster/internal/identity"
)

// caller is who asks.
type caller struct {
	keyID string
	role  identity.Role
}

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
	id, secret, problem := credentials(r)
	if d.config.Dev {
		who := caller{keyID: id, role: identity.Admin}
		if key, ok := d.config.Keys.Find(id); ok {
			who.role = key.Role // so that roles can be tried out
		}
		return who, denied(who, a, what)
	}
	if problem != nil {
		return caller{}, problem
	}
	key, ok := d.config.Keys.Find(id)
	// Compared also when there is no such key, in the same time.
	if !identity.Equal(secret, key.Secret) || !ok {
		return caller{}, unauthorized("there is no access key with this id and secret")
	}
	who := caller{keyID: key.ID, role: key.Role}
	if key.Role != identity.Client && !d.private(r) {
		// A client key is in every copy of the game, so nothing is lost when somebody listens. Any other one is a secret.
		return caller{}, &Problem{status: http.StatusForbidden, Name: accessDenied, Message: fmt.Sprintf(
			"access key %s has the role %s and was sent without TLS: whoever listens has it now; use https, or a key of the role client", key.ID, key.Role)}
	}
	return who, denied(who, a, what)
}

func denied(who caller, a access, what string) *Problem {
	if a.allows(who.role) {
		return nil
	}
	return &Problem{status: http.StatusForbidden, Name: accessDenied,
		Message: fmt.Sprintf("access key %s has the role %s, which may not call %s", who.keyID, who.role, what)}
}

// private reports whether nobody can listen.
func (d *Door) private(r *http.Request) bool {
	if r.TLS != nil || d.config.Secure {
		return true
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func credentials(r *http.Request) (id, secret string, problem *Problem) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return "", "", unauthorized("the Authorization header is missing; want Bearer KEYID.SECRET, or Basic with both")
	}
	scheme, token, _ := strings.Cut(header, " ")
	if strings.EqualFold(scheme, "Bearer") {
		if id, secret, ok := strings.Cut(strings.TrimSpace(token), "."); ok {
			return id, secret, nil
		}
	} else if id, secret, ok := r.BasicAuth(); ok {
		return id, secret, nil
	}
	return "", "", unauthorized("the Authorization header is malformed; want Bearer KEYID.SECRET, or Basic with both")
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
