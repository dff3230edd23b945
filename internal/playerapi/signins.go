package playerapi

import (
	"context"
	"errors"

	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/signin"
)

// Signins see who signs in to the realms.
type Signins struct {
	Players, Partners, Operators *signin.Door
}

// of is the one of a realm.
func (s *Signins) of(d *Door, r *realm) *signin.Door {
	switch r {
	case d.partner:
		return s.Partners
	case d.operator:
		return s.Operators
	}
	return s.Players
}

// slowed is the answer to a sign-in that comes after too many that failed.
func slowed(slow *signin.Slowed) *Problem {
	return later(flow.RateLimited, slow.Wait, "%s", slow)
}

// failed counts a failed sign-in and gives the answer: the one that says why, or that there were too many.
func failed(door *signin.Door, f signin.Failure, problem *Problem) *Problem {
	if slow := door.Fail(f); slow != nil {
		return slowed(slow)
	}
	return problem
}

// failedLogin is failed for a Login.
func (d *Door) failedLogin(ctx context.Context, cause error) *Problem {
	return failed(d.config.Signins.Players, signin.Failure{From: whoOf(ctx).address, Reason: signin.WrongToken, Player: true, Cause: cause}, badToken())
}

// signInFailures are the refusals of access tokens.
var signInFailures = map[string]signin.Reason{
	string(flow.Unauthenticated): signin.Missing,
	string(flow.SessionNotFound): signin.WrongToken,
	string(flow.TokenExpired):    signin.Expired,
	string(flow.SessionReplaced): signin.Expired,
}

// refusedToken counts an access token that was refused. Any other error stays what it is.
func (d *Door) refusedToken(address string, err error) error {
	problem, ok := errors.AsType[*Problem](err)
	if !ok {
		return err
	}
	reason, ok := signInFailures[string(problem.Code)]
	if !ok {
		return err
	}
	return failed(d.config.Signins.Players, signin.Failure{From: address, Reason: reason, Player: true}, problem)
}

func (d *Door) proxies() clientaddress.Proxies { return d.config.Transport.Proxies }
