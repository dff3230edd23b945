package playerapi

import (
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/edge"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/signin"
)

// AuthConfig is what the authentication of requests needs.
type AuthConfig struct {
	State     *State
	Secret    identity.CellSecret                // access tokens and the tokens of game servers are derived from it
	Keys      identity.Finder                    // access keys of trusted servers and operators
	Providers map[string]authentication.Provider // by the name in Login; BackendProvider is always there
	LoginKeys *authentication.LoginKeys          // of backends that sign tokens for their players; nil: login tickets only
	Dev       bool                               // trusted servers and operators need no credentials
	Transport edge.Transport                     // tells how a request came
	Signins   Signins
}

// Authenticator finds out who makes a request.
type Authenticator struct{ AuthConfig }

// Stranger is the principal of a request before it is authenticated.
func (a *Authenticator) Stranger(r *http.Request) *Principal {
	return &Principal{Principal: identity.Principal{Address: clientaddress.Proxies(a.Transport.Proxies).Of(r)}, Host: r.Host, TLS: a.Transport.Secure(r)}
}

// Signins counts the failed sign-ins of each realm.
type Signins struct {
	Players, Partners, Operators *signin.Door
}

// of is the door of a realm of trusted servers or operators.
func (s *Signins) of(realm string) *signin.Door {
	if realm == operatorRealm {
		return s.Operators
	}
	return s.Partners
}

// slowed is the answer to a sign-in that comes after too many failed ones.
func slowed(slow *signin.Slowed) *Problem {
	return later(flow.RateLimited, slow.Wait, "%s", slow)
}

// failed counts a failed sign-in. It returns the answer: the problem, or that there were too many failures.
func failed(door *signin.Door, f signin.Failure, problem *Problem) *Problem {
	if slow := door.Fail(f); slow != nil {
		return slowed(slow)
	}
	return problem
}

// bearer is the bearer token of a request; empty: it has none.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
