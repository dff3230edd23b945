package gameclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// What a caller may want to tell apart, with errors.Is. The text of the error says more, for people.
var (
	// ErrFull: every seat of the game session is taken.
	ErrFull = errors.New("the game session is full")

	// ErrWrongStatus: the game session is not ACTIVE or takes no new players, or the fleet is being deleted.
	ErrWrongStatus = errors.New("the status does not allow it")

	// ErrNoCapacity: no game server is free. Another location, or a later try, may have one.
	ErrNoCapacity = errors.New("no game server is free")

	// ErrNotFound: what the request names is not there, or not any more.
	ErrNotFound = errors.New("not found")

	// ErrUnauthorized: the credentials are unknown, expired, or may not do this.
	ErrUnauthorized = errors.New("not authorized")

	// ErrRefused: the service understood and said no for another reason. Asking again does not help.
	ErrRefused = errors.New("refused by the service")

	// ErrUnavailable: no usable answer, or the service asks for patience. Asking again later may help; whether the
	// request took effect is not known.
	ErrUnavailable = errors.New("no answer from the service")

	// ErrNoConnector: the Client was made without a Connector and cannot join. Nothing was reserved.
	ErrNoConnector = errors.New("the client has no connector")

	// ErrAlreadyJoined: the Client is in a game session, or on its way into or out of one.
	ErrAlreadyJoined = errors.New("already in a game session")

	// ErrNotJoined: the Client is in no game session.
	ErrNotJoined = errors.New("in no game session")

	// ErrNotPlaying: the friend is in no game session now.
	ErrNotPlaying = errors.New("the player is in no game session")

	// ErrNotMatched: the match has no seat for this player.
	ErrNotMatched = errors.New("the match has no seat for this player")

	// ErrTracked: the ticket is being tracked already.
	ErrTracked = errors.New("the ticket is being tracked already")
)

// InvalidRequestError is a request that cannot be meant. It is found before anything is sent.
type InvalidRequestError struct {
	Call  string // "JoinSession"
	Field string // "PlayerID", "Players[1].Attributes[skill]"
	Value string
	Want  string
}

func (e *InvalidRequestError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("gameclient: %s: %s: want %s", e.Call, e.Field, e.Want)
	}
	return fmt.Sprintf("gameclient: %s: %s is %q: want %s", e.Call, e.Field, e.Value, e.Want)
}

// Error is a call that was not done. Kind is one of the errors above. Cause is the SDK's error, in which errors.As finds the API's
// own exception, or the context's; nil when nothing was sent.
type Error struct {
	Call  string // "CreateSession"
	Kind  error
	Cause error
}

func (e *Error) Error() string {
	if e.Cause == nil {
		return fmt.Sprintf("gameclient: %s: %v", e.Call, e.Kind)
	}
	return fmt.Sprintf("gameclient: %s: %v: %v", e.Call, e.Kind, e.Cause)
}

// Unwrap makes errors.Is find the kind, and errors.As the SDK's own error.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// Code is the API's name of the exception, such as GameSessionFullException; empty when there was no answer.
func (e *Error) Code() string { return codeOf(e.Cause) }

// codeOf is the name of an exception. The SDK leaves its namespace in front of one that it does not expect.
func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code := api.ErrorCode()
		return code[strings.LastIndexByte(code, '#')+1:]
	}
	return ""
}

// Stage is how far a join came.
type Stage string

// The stages of a join.
const (
	StageReserve Stage = "reserve" // taking the seat
	StageConnect Stage = "connect" // connecting to the game server
)

// JoinError is a join that failed. After StageConnect the seat is still reserved: Connect may try again with it within
// the reservation, by default 60 s, and Release gives it back.
type JoinError struct {
	Call  string // "JoinSession"
	Stage Stage
	Seat  Seat // with its PlayerSessionID after StageConnect
	Cause error
}

func (e *JoinError) Error() string {
	switch {
	case e.Stage == StageReserve && e.Seat.SessionID == "":
		return fmt.Sprintf("gameclient: %s: reserve a seat: %v", e.Call, e.Cause)
	case e.Stage == StageReserve:
		return fmt.Sprintf("gameclient: %s: reserve a seat in %s: %v", e.Call, e.Seat.SessionID, e.Cause)
	}
	return fmt.Sprintf("gameclient: %s: connect %s to %s: %v", e.Call, e.Seat.PlayerSessionID, e.Seat.Address(), e.Cause)
}

func (e *JoinError) Unwrap() error { return e.Cause }

// PlacementError is a placement that did not give a game session, or whose end was not waited for: then Cause says why,
// Status is PENDING, and AwaitPlacement goes on waiting.
type PlacementError struct {
	Call        string // "CreateSessionOnQueue"
	PlacementID string
	Status      PlacementStatus
	Cause       error // nil when the placement has ended
}

func (e *PlacementError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("gameclient: %s: placement %s is %s: %v", e.Call, e.PlacementID, e.Status, e.Cause)
	}
	return fmt.Sprintf("gameclient: %s: placement %s has ended as %s", e.Call, e.PlacementID, e.Status)
}

func (e *PlacementError) Unwrap() error { return e.Cause }

var kindsByCode = map[string]error{
	"GameSessionFullException":            ErrFull,
	"InvalidGameSessionStatusException":   ErrWrongStatus,
	"InvalidFleetStatusException":         ErrWrongStatus,
	"TerminalRoutingStrategyException":    ErrWrongStatus,
	"FleetCapacityExceededException":      ErrNoCapacity,
	"NotFoundException":                   ErrNotFound,
	"UnauthorizedException":               ErrUnauthorized,
	"AccessDeniedException":               ErrUnauthorized,
	"UnrecognizedClientException":         ErrUnauthorized,
	"InvalidSignatureException":           ErrUnauthorized,
	"IncompleteSignatureException":        ErrUnauthorized,
	"MissingAuthenticationTokenException": ErrUnauthorized,
	"ExpiredTokenException":               ErrUnauthorized,
	"ThrottlingException":                 ErrUnavailable,
	"InternalServiceException":            ErrUnavailable,
}

// failed translates what a call of the SDK came back with.
func failed(call string, err error) error {
	return &Error{Call: call, Kind: kindOf(err), Cause: err}
}

func kindOf(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ErrUnavailable
	}
	if kind := kindsByCode[codeOf(err)]; kind != nil {
		return kind
	}
	// An exception without a kind of its own: the status tells a no from an outage.
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		switch status := response.HTTPStatusCode(); {
		case status == http.StatusTooManyRequests:
		case status == http.StatusUnauthorized, status == http.StatusForbidden:
			return ErrUnauthorized
		case status >= 400 && status < 500:
			return ErrRefused
		}
	}
	return ErrUnavailable
}

// check finds the first field that is wrong.
type check struct {
	call string
	err  error
}

func (c *check) need(field, value string) { c.that(value != "", field, "", "a value") }

func (c *check) that(ok bool, field, value, want string) {
	if !ok && c.err == nil {
		c.err = &InvalidRequestError{c.call, field, value, want}
	}
}
