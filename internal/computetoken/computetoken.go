// Package computetoken checks the auth token of a compute, with which its game servers and its agent connect.
package computetoken

import (
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/identity"
)

// Accepted says which token it was.
type Accepted struct {
	Registration domain.UUID // of the compute
	Generation   uint32
	Expires      domain.Time
}

// ErrWrong means that the token is not one of the compute.
var ErrWrong = errors.New("the auth token is not one of the compute")

// Expired means that the token was one of the compute.
type Expired struct {
	Compute string
	At      time.Time
}

func (e *Expired) Error() string {
	return fmt.Sprintf("the auth token of compute %s expired at %s", e.Compute, e.At)
}

// Check compares a token with those of the compute: the newest and the one before. With late, it accepts an expired one.
func Check(secret identity.CellSecret, compute *fleet.Compute, token string, now domain.Time, late bool) (Accepted, error) {
	for age, expires := range []domain.Time{compute.TokenExpires, compute.PreviousExpires} {
		if uint32(age) >= compute.TokenGeneration { // the first one issued is number 1
			break
		}
		generation := compute.TokenGeneration - uint32(age)
		if generation <= compute.TokensVoid {
			break
		}
		switch {
		case !secret.Accepts("auth token of a compute", func(g identity.CellSecret) bool {
			return identity.Equal(token, g.ProcessToken(compute.FleetID, compute.Name, compute.Registration, generation))
		}):
		case expires > now || late:
			return Accepted{compute.Registration, generation, expires}, nil
		default:
			return Accepted{}, &Expired{compute.Name, expires.Std()}
		}
	}
	return Accepted{}, ErrWrong
}

// Void reports whether a token that was accepted has become void: the compute was registered again, or an operator replaced the token.
func (a Accepted) Void(compute *fleet.Compute) bool {
	return a.Registration != compute.Registration || a.Generation <= compute.TokensVoid
}
