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

// The kinds of errors, for errors.Is. The text of an error contains more detail.
var (
	// ErrFull: every seat of the game session is taken.
	ErrFull = errors.New("the game session is full")

	// ErrWrongStatus: the game session is not ACTIVE or admits no new players, or the fleet is being deleted.
	ErrWrongStatus = errors.New("the status does not allow it")

	// ErrNoCapacity: no game server is free. Another location may have one, or the same location later.
	ErrNoCapacity = errors.New("no game server is free")

	// ErrNotFound: the fleet, game session, ticket or other thing in the request does not exist, or no longer exists.
	ErrNotFound = errors.New("not found")

	// ErrUnauthorized: the credentials are unknown or expired, or do not permit the call.
	ErrUnauthorized = errors.New("not authorized")

	// ErrRefused: the service refused the call for another reason. The same call will fail again.
	ErrRefused = errors.New("refused by the service")

	// ErrUnavailable: there was no usable answer, or the service limits the rate of calls, or ctx has ended. A later call may succeed.
	// It is unknown whether the request took effect.
	ErrUnavailable = errors.New("no answer from the service")

	// ErrNoConnector: the Client was made without a Connector and cannot join. Nothing was reserved.
	ErrNoConnector = errors.New("the client has no connector")

	// ErrAlreadyJoined: the Client is in a game session, or is joining or leaving one.
	ErrAlreadyJoined = errors.New("already in a game session")

	// ErrNotJoined: the Client is in no game session.
	ErrNotJoined = errors.New("in no game session")

	// ErrNotPlaying: the player is in no game session now.
	ErrNotPlaying = errors.New("the player is in no game session")

	// ErrNotMatched: the match has no seat for this player.
	ErrNotMatched = errors.New("the match has no seat for this player")

	// ErrTracked: the Tracker already tracks the ticket.
	ErrTracked = errors.New("the ticket is already being tracked")
)

// InvalidRequestError is a request with an impossible value. The client finds it before it sends anything.
type InvalidRequestError struct {
	Call  string // "JoinSession"
	Field string // "PlayerID", "Players[1].Attributes[skill]"
	Value string // the value in the request; empty if it is missing
	Want  string // the values that are possible
}

func (e *InvalidRequestError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("gameclient: %s: %s: want %s", e.Call, e.Field, e.Want)
	}
	return fmt.Sprintf("gameclient: %s: %s is %q: want %s", e.Call, e.Field, e.Value, e.Want)
}

// Error is a call that failed.
type Error struct {
	Call  string // "CreateSession"
	Kind  error  // one of the errors above
	Cause error  // the SDK's error, in which errors.As finds the API's own exception, or the context's; nil if nothing was sent
}

func (e *Error) Error() string {
	if e.Cause == nil {
		return fmt.Sprintf("gameclient: %s: %v", e.Call, e.Kind)
	}
	return fmt.Sprintf("gameclient: %s: %v: %v", e.Call, e.Kind, e.Cause)
}

// Unwrap lets errors.Is find the kind, and errors.As the SDK's own error.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// Code is the API's name of the exception, such as GameSessionFullException; empty if there was no answer.
func (e *Error) Code() string { return codeOf(e.Cause) }

// codeOf returns the name of an exception. The SDK leaves the namespace in front of exceptions that it does not expect.
func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code := api.ErrorCode()
		return code[strings.LastIndexByte(code, '#')+1:]
	}
	return ""
}

// Stage is the step in which a join failed.
type Stage string

// The stages of a join.
const (
	StageReserve Stage = "reserve" // reserving the seat
	StageConnect Stage = "connect" // connecting to the game server
)

// JoinError is a join that failed. After StageConnect the seat is still reserved: Connect may try again until the reservation
// ends, by default after 60 s, and Release frees the seat.
type JoinError struct {
	Call  string // "JoinSession"
	Stage Stage  // the step that failed
	Seat  Seat   // with its PlayerSessionID after StageConnect
	Cause error  // an *Error after StageReserve, the Connector's error after StageConnect
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

// PlacementError is a placement that has ended without a game session, or a wait for a placement that was given up. In the second
// case Status is PENDING, Cause says why the wait ended, and AwaitPlacement continues it.
type PlacementError struct {
	Call        string          // "CreateSessionOnQueue"
	PlacementID string          // for AwaitPlacement and StopPlacement
	Status      PlacementStatus // CANCELLED, TIMED_OUT or FAILED after the end, otherwise PENDING
	Cause       error           // nil if the placement has ended
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

// errIncomplete is the cause of ErrUnavailable for an answer of another program than the service.
var errIncomplete = errors.New("the answer is incomplete")

// failed translates an error of the SDK.
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
	// For other exceptions the status distinguishes a refusal from an outage.
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
