package authentication

import (
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/edge"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/playerapi/state"
	"github.com/musterhq/muster/internal/signin"
)

// Config has the dependencies and settings of an authenticator.
type Config struct {
	State     *state.State
	Secret    identity.CellSecret // access tokens and the tokens of game servers are derived from it
	Keys      identity.Finder     // access keys of trusted servers and operators
	Logins    *live.Value[Logins]
	Dev       bool           // trusted servers and operators need no credentials
	Transport edge.Transport // reports the client's address, and whether a request came over TLS
	Signins   Signins
	ReadCalls []string // the paths of the calls that access keys of the role readonly may make as well
}

// Logins are the authorities that identify players at the login.
type Logins struct {
	Providers map[string]Provider // by the name in Login; BackendProvider is always there
	Keys      *LoginKeys          // of backends that sign tokens for their players; nil: login tickets only
}

// Authenticator authenticates requests.
type Authenticator struct{ Config }

// Stranger returns the principal of a request before it is authenticated.
func (a *Authenticator) Stranger(r *http.Request) *principal.Principal {
	return &principal.Principal{Principal: identity.Principal{Address: a.Transport.Proxies.Of(r)}, Host: r.Host, TLS: a.Transport.Secure(r)}
}

// Signins counts the failed sign-ins of each realm.
type Signins struct {
	Players, Partners, Operators *signin.Door
}

// of returns the door of a realm of trusted servers or operators.
func (s *Signins) of(realm string) *signin.Door {
	if realm == principal.OperatorRealm {
		return s.Operators
	}
	return s.Partners
}

// slowed returns the answer to a sign-in attempt that follows too many failed ones.
func slowed(slow *signin.Slowed) *problem.Problem {
	return problem.Later(flow.RateLimited, slow.Wait, "%s", slow)
}

// Failed counts a failed sign-in. It returns the answer: the problem, or that there were too many failures.
func Failed(door *signin.Door, f signin.Failure, problem *problem.Problem) *problem.Problem {
	if slow := door.Fail(f); slow != nil {
		return slowed(slow)
	}
	return problem
}

// Bearer returns the bearer token of a request, or the empty string if there is none.
func Bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
