package gameserver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/common"
)

// What a caller may want to tell apart, with errors.Is. The text of the error says more, for people.
var (
	// ErrRefused: the service understood and said no. Asking again does not help.
	ErrRefused = errors.New("refused by the service")

	// ErrUnavailable: no usable answer, or the service asks for patience. Asking again later may help; whether the
	// request took effect is not known.
	ErrUnavailable = errors.New("no answer from the service")

	// ErrUnauthorized: the service does not know this process: wrong or expired token, or not this fleet's compute.
	ErrUnauthorized = errors.New("not authorized")

	// ErrWrongEndpoint: the URL leads to no game session service that this host trusts. Asking again does not help.
	ErrWrongEndpoint = errors.New("no trusted game session service at this URL")

	// ErrNoSession: there is no game session yet that this call could be about.
	ErrNoSession = errors.New("no game session yet")

	// ErrEnded: the process is ending or has ended.
	ErrEnded = errors.New("the server process has ended")

	// ErrNotReady: a step that comes first is missing, Connect or NotifyProcessReady.
	ErrNotReady = errors.New("the process is not ready yet")

	// ErrConnectionKnown: a player joins, or has joined, over this connection already.
	ErrConnectionKnown = errors.New("the connection belongs to a player already")

	// ErrNoMatch: the game session was not made by a match, so there is nothing to fill up.
	ErrNoMatch = errors.New("the game session was not made by a match")

	// ErrNoFlow: the game session is none of player flow, or its game instance is forgotten.
	ErrNoFlow = errors.New("the game session has no game instance")

	// ErrUnsupported: the service has no such thing.
	ErrUnsupported = errors.New("not supported by the service")

	// ErrAlreadyStarted: this Server was started before, or this program has, or had, its one Server with the official SDK.
	ErrAlreadyStarted = errors.New("a server was already started")
)

// Error is a call that failed. Kind is one of the errors above; Cause is the SDK's error, a
// *common.GameLiftError, a *ConnectError, the context's, or of a GameInstance a *FlowError.
type Error struct {
	Call  string // "AcceptPlayer"
	Kind  error
	Cause error
}

func (e *Error) Error() string {
	if e.Cause == nil {
		return fmt.Sprintf("gameserver: %s: %v", e.Call, e.Kind)
	}
	return fmt.Sprintf("gameserver: %s: %v: %v", e.Call, e.Kind, e.Cause)
}

// Unwrap makes errors.Is find the kind, and errors.As the SDK's own error.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// failed translates what a call came back with. The SDK wraps the answers to ProcessReady and ProcessEnding into
// one type each and leaves the original only in the text, from which it can be read back.
func failed(call string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &Error{Call: call, Kind: ErrUnavailable, Cause: err}
	}
	kind := ErrUnavailable
	if refused, ok := errors.AsType[*ConnectError](err); ok {
		kind = refused.kind()
	}
	if sdk, ok := errors.AsType[*common.GameLiftError](err); ok {
		kind = kindOf(sdk.ErrorType, sdk.Error())
	}
	return &Error{Call: call, Kind: kind, Cause: err}
}

func kindOf(t common.GameLiftErrorType, text string) error {
	switch t {
	case common.BadRequestException, common.NotFoundException, common.ConflictException,
		common.ForbiddenException, // the thing asked about belongs to another process
		common.ValidationException, common.AlreadyInitialized:
		return ErrRefused
	case common.UnauthorizedException:
		return ErrUnauthorized
	case common.LocalConnectionFailed: // the SDK keeps the HTTP status of the last attempt in the text alone
		if strings.Contains(text, "connection error 403") || strings.Contains(text, "connection error 401") {
			return ErrUnauthorized
		}
	case common.GamesessionIDNotSet:
		return ErrNoSession
	case common.ProcessNotReady, common.ProcessEndingFailed:
		if inner := wrappedType(text); inner != t && inner != common.UnknownException {
			return kindOf(inner, "")
		}
	}
	return ErrUnavailable
}

// wrappedType finds the SDK error inside the text of another one.
func wrappedType(text string) common.GameLiftErrorType {
	const mark = "[GameLiftError: "
	if at := strings.LastIndex(text, mark); at > 0 {
		return common.GetErrorTypeFromMessage(text[at:])
	}
	return common.UnknownException
}
