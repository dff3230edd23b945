package sessionapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/engine"
)

// Problem explains why a node failed. Name is for programs and never changes; Message is for people. Field, Value and Expected are set if a
// part of the request is invalid.
type Problem struct {
	status int
	retry  int // seconds after which to try again; 0: the default

	Name     string `json:"name"`
	Message  string `json:"message"`
	Field    string `json:"field,omitempty"`
	Value    any    `json:"value,omitempty"`
	Expected string `json:"expected,omitempty"`
}

func (p *Problem) Error() string { return p.Name + ": " + p.Message }

// Names of problems that are not refusals of the core.
const (
	invalidRequest = "InvalidRequest"
	unknownNode    = "UnknownNode"
	unknownCall    = "UnknownCall"
	notAuthorized  = "NotAuthorized"
	accessDenied   = "AccessDenied"
	bodyTooLarge   = "BodyTooLarge"
	internalError  = "InternalError"
	unavailable    = "Unavailable"
	overloaded     = "Overloaded"
	tooManySignIns = "TooManyFailedSignIns"
)

// refusals has the status and name at this door for each reason of the core. Only this table defines them.
var refusals = map[domain.Reason]struct {
	status int
	name   string
}{
	domain.Invalid:          {http.StatusBadRequest, invalidRequest},
	domain.NotFound:         {http.StatusNotFound, "NotFound"},
	domain.Conflict:         {http.StatusConflict, "Conflict"},
	domain.WrongFleetStatus: {http.StatusConflict, "FleetNotActive"},
	domain.WrongGameStatus:  {http.StatusConflict, "SessionNotActive"},
	domain.NotReady:         {http.StatusConflict, "NotReady"},
	domain.Full:             {http.StatusConflict, "SessionFull"},
	domain.NoCapacity:       {http.StatusConflict, "NoFreeServer"},
	domain.LimitExceeded:    {http.StatusTooManyRequests, "LimitExceeded"},
	domain.TokenMismatch:    {http.StatusConflict, "IdReused"},
	domain.WrongPlayerState: {http.StatusConflict, "PlayerState"},
	domain.NotYours:         {http.StatusConflict, "NotYours"},
	domain.Overloaded:       {http.StatusTooManyRequests, overloaded},
	domain.TerminalRoute:    {http.StatusConflict, "AliasTerminal"},
	domain.NodeLost:         {http.StatusServiceUnavailable, unavailable},    // of connections, which nodes do not have
	domain.Stale:            {http.StatusInternalServerError, internalError}, // never leaves the engine
}

// problemOf converts any error to a problem. An error that is neither a refusal nor a problem is the service's own failure: the client
// does not learn its cause, which is in the log.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if r, ok := errors.AsType[*domain.Refusal](err); ok {
		if s, ok := refusals[r.Reason]; ok {
			return &Problem{status: s.status, Name: s.name, Message: r.Detail}
		}
	}
	switch {
	case errors.Is(err, engine.ErrStopped): // usually a full disk: the operator must see the cause at once
		return &Problem{status: http.StatusServiceUnavailable, Name: unavailable, Message: err.Error()}
	case errors.Is(err, context.Canceled): // the caller has gone
		return &Problem{status: http.StatusServiceUnavailable, Name: unavailable, Message: "the request was given up"}
	}
	return internalProblem()
}

func internalProblem() *Problem {
	return &Problem{status: http.StatusInternalServerError, Name: internalError, Message: "the request failed inside the service; the log has the cause"}
}

// invalid returns the problem of a field with an invalid value. expected describes valid ones.
func invalid(field string, value any, expected string) *Problem {
	if text, ok := value.(string); ok {
		value = excerpt.Short(text)
	}
	return &Problem{
		status: http.StatusBadRequest, Name: invalidRequest, Field: field, Value: value, Expected: expected,
		Message: fmt.Sprintf("%s: %s; want %s", field, inWords(value), expected),
	}
}

// missing returns the problem of a missing required field.
func missing(field, expected string) *Problem {
	return &Problem{status: http.StatusBadRequest, Name: invalidRequest, Field: field, Expected: expected,
		Message: fmt.Sprintf("%s: missing; want %s", field, expected)}
}

func inWords(value any) string {
	if text, ok := value.(string); ok {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprint(value)
}

// failure is the body of every answer that reports a problem.
type failure struct {
	Error *Problem `json:"error"`
}

// Refuse answers a request that does not reach the door.
func Refuse(w http.ResponseWriter, message string) {
	refuse(w, &Problem{status: http.StatusForbidden, Name: accessDenied, Message: message})
}

func refuse(w http.ResponseWriter, p *Problem) {
	switch p.status {
	case http.StatusUnauthorized:
		w.Header().Add("WWW-Authenticate", `Bearer realm="muster"`)
		w.Header().Add("WWW-Authenticate", `Basic realm="muster"`)
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", strconv.Itoa(max(p.retry, 1)))
	}
	answer(w, p.status, failure{p})
}
