package authentication

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/signin"
	"github.com/musterhq/muster/internal/tokenkeys"
)

// accessPrefix begins every access token, so that a leaked one is easy to recognise.
const accessPrefix = "pfa_"

// AccessToken returns the access token of a login session after a refresh; zero: after the login. A repeated call gets the same token.
func (a *Authenticator) AccessToken(loginSession flow.LoginSessionID, refresh domain.UUID) string {
	return accessPrefix + a.Secret.AccessToken(loginSession, refresh)
}

// AccessTokenOf is AccessToken for an answer that may be a repeat: the token was derived when the login session had one of these hashes,
// possibly from an earlier generation of the secret.
func (a *Authenticator) AccessTokenOf(l *flow.Login, refresh domain.UUID) string {
	for _, g := range a.Secret.AcceptedGenerations() {
		token := accessPrefix + g.AccessToken(l.ID, refresh)
		if hash := Hash(token); hash == l.Token || hash == l.Previous {
			return token
		}
	}
	return a.AccessToken(l.ID, refresh) // the token has been replaced since
}

// Player finds the login session of a player's call from an address.
func (a *Authenticator) Player(r *http.Request, from string) (flow.Login, error) {
	token := Bearer(r)
	if token == "" {
		return flow.Login{}, a.refusedToken(from, signin.Missing,
			problem.New(flow.Unauthenticated, "the Authorization header is missing; want Bearer and the access token of Session.Login"))
	}
	return a.PlayerByToken(r.Context(), from, token)
}

// PlayerByToken finds the login session of an access token from an address.
func (a *Authenticator) PlayerByToken(ctx context.Context, from, token string) (flow.Login, error) {
	var l flow.Login
	var stale, ok bool
	err := a.State.Read(ctx, func(v *cell.View) error {
		l, stale, ok = v.LoginByToken(Hash(token), a.State.Instant())
		return nil
	})
	switch {
	case err != nil:
		return l, err
	case !ok:
		return l, a.refusedToken(from, signin.WrongToken, problem.New(flow.SessionNotFound, "the login session of this access token has ended or never existed"))
	case l.State != flow.LoginLive:
		p := problem.New(flow.SessionReplaced, "a later login of the player has replaced this login session")
		p.Flow = a.State.StandNow(ctx, l.Player)
		return l, a.refusedToken(from, signin.Expired, p)
	case stale, !a.Secret.Accepted(identity.AccessTokenGeneration(strings.TrimPrefix(token, accessPrefix)), "access token of a player"):
		return l, a.refusedToken(from, signin.Expired, problem.New(flow.TokenExpired, "the access token was replaced by a newer one"))
	}
	connlimit.Prove(ctx)
	return l, nil
}

func (a *Authenticator) refusedToken(from string, reason signin.Reason, problem *problem.Problem) *problem.Problem {
	return Failed(a.Signins.Players, signin.Failure{From: from, Reason: reason, Player: true}, problem)
}

// BackendProvider is the provider of players who present a login ticket that a trusted backend has fetched, or a token that it has signed.
const BackendProvider = "backend"

// providerAgain is how long clients should wait for an identity provider, which is asked at most twice a minute.
const providerAgain = 10 * time.Second

// Login verifies the credential of a login, by the name of its provider.
func (a *Authenticator) Login(ctx context.Context, name, token string) (Claim, error) {
	logins := a.Logins.Get()
	if name == BackendProvider && (logins.Keys == nil || strings.HasPrefix(token, TicketPrefix)) {
		claim, ok := ClaimOfTicket(token)
		if !ok {
			return claim, a.FailedLogin(ctx, nil)
		}
		return claim, nil
	}
	provider, ok := logins.Providers[name]
	if name == BackendProvider {
		provider, ok = logins.Keys, true
	}
	if !ok {
		known := append(slices.Sorted(maps.Keys(logins.Providers)), BackendProvider)
		return Claim{}, problem.Invalid("provider", "%.60q, want one of %s", name, strings.Join(known, ", "))
	}
	claim, err := provider.Identify(ctx, token)
	if errors.Is(err, tokenkeys.ErrNotFetched) { // the token may be good, but it counts as a failed login, since anyone can send such a token
		return Claim{}, Failed(a.Signins.Players, failure(ctx, fmt.Errorf("provider %s: %w", name, err)),
			problem.Later(flow.Unavailable, providerAgain, "the identity provider does not answer; try again later"))
	}
	if err != nil {
		return Claim{}, a.FailedLogin(ctx, fmt.Errorf("provider %s: %w", name, err))
	}
	return claim, nil
}

// FailedLogin counts a failed login and returns the answer. Only the log gets the cause.
func (a *Authenticator) FailedLogin(ctx context.Context, cause error) *problem.Problem {
	return Failed(a.Signins.Players, failure(ctx, cause), problem.New(flow.Unauthenticated, "token: not valid for a login"))
}

func failure(ctx context.Context, cause error) signin.Failure {
	return signin.Failure{From: principal.Of(ctx).Address, Reason: signin.WrongToken, Player: true, Cause: cause}
}
