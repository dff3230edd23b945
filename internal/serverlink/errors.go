package serverlink

import (
	"errors"
	"net/http"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/signin"
)

// answerStatuses maps refusals to the status codes of answers to game servers. docs/spec/server-sdk.md#status-codes.
var answerStatuses = map[domain.Reason]int{
	domain.Invalid:          400,
	domain.NotFound:         404,
	domain.Conflict:         400, // a wrong state; 409 is for stale data
	domain.WrongFleetStatus: 400,
	domain.WrongGameStatus:  400,
	domain.NotReady:         400,
	domain.Full:             400,
	domain.NoCapacity:       400,
	domain.LimitExceeded:    429,
	domain.TokenMismatch:    409,
	domain.WrongPlayerState: 400,
	domain.NotYours:         403,
	domain.Overloaded:       429,
	domain.TerminalRoute:    400, // no game server names an alias
	domain.NodeLost:         429, // the connection is about to be closed; another node takes the next one
	domain.Stale:            409,
}

// answerStatus translates an error for a game server. An error that is not a refusal is an internal error, whose cause is only
// logged.
func answerStatus(err error) (status int, message string) {
	if r, ok := errors.AsType[*domain.Refusal](err); ok {
		return answerStatuses[r.Reason], r.Detail
	}
	return 500, "the service cannot do this now"
}

// connectStatus returns the HTTP status for a refused connection.
func connectStatus(err error) int {
	r, refused := errors.AsType[*domain.Refusal](err)
	_, slowed := errors.AsType[*signin.Slowed](err)
	switch {
	case slowed:
		return http.StatusTooManyRequests
	case errors.Is(err, errForbidden):
		return http.StatusForbidden
	case !refused, r.Reason == domain.NodeLost:
		return http.StatusServiceUnavailable
	case r.Reason == domain.LimitExceeded || r.Reason == domain.Overloaded:
		return http.StatusTooManyRequests
	}
	return http.StatusForbidden // the fleet or compute was removed meanwhile
}
