package gameserver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/common"
)

// The kinds of errors, for errors.Is. The text of an error contains more detail.
var (
	// ErrRefused: the service refused the call. The same call will fail again.
	ErrRefused = errors.New("refused by the service")

	// ErrUnavailable: there was no usable answer, or the service limits the rate of calls, or ctx has ended. A later call may succeed.
	// It is unknown whether the request took effect.
	ErrUnavailable = errors.New("no answer from the service")

	// ErrUnauthorized: the service does not accept this process: the token is wrong or expired, or of another compute.
	ErrUnauthorized = errors.New("not authorized")

	// ErrWrongEndpoint: there is no game session service at the URL, or this host does not trust its certificate. Another attempt will fail,
	// too.
	ErrWrongEndpoint = errors.New("no trusted game session service at this URL")

	// ErrNoSession: the process has no game session yet.
	ErrNoSession = errors.New("no game session yet")

	// ErrEnded: the process is ending or has ended.
	ErrEnded = errors.New("the server process has ended")

	// ErrNotReady: Connect or NotifyProcessReady has not been called before.
	ErrNotReady = errors.New("the process is not ready yet")

	// ErrConnectionKnown: a player is joining, or has joined, over this connection.
	ErrConnectionKnown = errors.New("the connection belongs to a player already")

	// ErrNoMatch: no match created the game session, so that backfill is impossible.
	ErrNoMatch = errors.New("the game session was not made by a match")

	// ErrNoFlow: the game session does not belong to player flow, or its game ended long ago.
	ErrNoFlow = errors.New("the game session has no game instance")

	// ErrUnsupported: no service supports the call, or not in this mode.
	ErrUnsupported = errors.New("not supported by the service")

	// ErrAlreadyStarted: this Server was started before, or this program has or had another Server with the official SDK.
	ErrAlreadyStarted = errors.New("a server was already started")
)

// Error is a call that failed.
type Error struct {
	Call  string // "AcceptPlayer"
	Kind  error  // one of the errors above
	Cause error  // a *common.GameLiftError of the SDK, a *ConnectError, the context's error, or a *FlowError of a GameInstance; may be nil
}

func (e *Error) Error() string {
	if e.Cause == nil {
		return fmt.Sprintf("gameserver: %s: %v", e.Call, e.Kind)
	}
	return fmt.Sprintf("gameserver: %s: %v: %v", e.Call, e.Kind, e.Cause)
}

// Unwrap lets errors.Is find the kind, and errors.As the SDK's own error.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// failed translates the error of a call. The SDK wraps the errors of ProcessReady and ProcessEnding into
// one type each and keeps the original only in the text.
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
		common.ForbiddenException, // the player session or game session belongs to another process
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
