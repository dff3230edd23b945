package gamelift

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/engine"
)

// refusals is the only mapping of the core's refusals to AWS errors. It has an entry for each reason.
var refusals = map[domain.Reason]func(detail *string) smithy.APIError{
	domain.Invalid:          invalidRequestError,
	domain.NotFound:         func(m *string) smithy.APIError { return &types.NotFoundException{Message: m} },
	domain.Conflict:         func(m *string) smithy.APIError { return &types.ConflictException{Message: m} },
	domain.WrongFleetStatus: func(m *string) smithy.APIError { return &types.InvalidFleetStatusException{Message: m} },
	domain.WrongGameStatus:  func(m *string) smithy.APIError { return &types.InvalidGameSessionStatusException{Message: m} },
	domain.NotReady:         func(m *string) smithy.APIError { return &types.NotReadyException{Message: m} },
	domain.Full:             func(m *string) smithy.APIError { return &types.GameSessionFullException{Message: m} },
	domain.NoCapacity:       func(m *string) smithy.APIError { return &types.FleetCapacityExceededException{Message: m} },
	domain.LimitExceeded:    func(m *string) smithy.APIError { return &types.LimitExceededException{Message: m} },
	domain.TokenMismatch:    func(m *string) smithy.APIError { return &types.IdempotentParameterMismatchException{Message: m} },
	domain.WrongPlayerState: invalidRequestError,                                  // game servers get this at their own door
	domain.NotYours:         invalidRequestError,                                  // as above
	domain.Overloaded:       func(*string) smithy.APIError { return throttled() }, // except for a quota, which is named: see toAPI
	domain.TerminalRoute:    func(m *string) smithy.APIError { return &types.TerminalRoutingStrategyException{Message: m} },
	domain.NodeLost:         func(*string) smithy.APIError { return internalError() }, // about connections, which AWS clients do not have
	domain.Stale:            func(*string) smithy.APIError { return internalError() }, // never leaves the engine
}

func invalidRequestError(m *string) smithy.APIError {
	return &types.InvalidRequestException{Message: m}
}

// Codes that every operation may return although the model does not list them.
const (
	codeUnknownOperation    = "UnknownOperationException"
	codeSerialization       = "SerializationException"
	codeMissingToken        = "MissingAuthenticationTokenException"
	codeIncompleteSignature = "IncompleteSignatureException"
	codeUnrecognizedClient  = "UnrecognizedClientException"
	codeExpiredToken        = "ExpiredTokenException"
	codeInvalidSignature    = "InvalidSignatureException"
	codeAccessDenied        = "AccessDeniedException"
	codeThrottling          = "ThrottlingException"
	codeEntityTooLarge      = "RequestEntityTooLargeException"
	codeRequestTimeout      = "RequestTimeoutException" // SDKs retry the request
	codeUnavailable         = "ServiceUnavailableException"
	codeMediaType           = "UnsupportedMediaTypeException"

	codeInvalidRequest  = "InvalidRequestException" // in the model, and declared by all operations
	codeInternalService = "InternalServiceException"
)

// commonStatus is the HTTP status of the codes above; all others have 400, including NotFoundException.
var commonStatus = map[string]int{
	codeUnknownOperation:    http.StatusBadRequest,
	codeSerialization:       http.StatusBadRequest,
	codeMissingToken:        http.StatusForbidden,
	codeIncompleteSignature: http.StatusForbidden,
	codeUnrecognizedClient:  http.StatusForbidden,
	codeExpiredToken:        http.StatusForbidden,
	codeInvalidSignature:    http.StatusForbidden,
	codeAccessDenied:        http.StatusForbidden,
	codeThrottling:          http.StatusBadRequest,
	codeEntityTooLarge:      http.StatusRequestEntityTooLarge,
	codeRequestTimeout:      http.StatusRequestTimeout,
	codeUnavailable:         http.StatusServiceUnavailable,
	codeMediaType:           http.StatusUnsupportedMediaType,
	codeInvalidRequest:      http.StatusBadRequest,
	codeInternalService:     http.StatusInternalServerError,
}

func statusOf(code string) int {
	if status, ok := commonStatus[code]; ok {
		return status
	}
	return http.StatusBadRequest
}

// toAPI maps any error to an API error. An error that is neither a refusal nor an API error is an internal error: the
// client gets no details, and cause is for the log.
func toAPI(err error) (spelled smithy.APIError, cause error) {
	if r, ok := errors.AsType[*domain.Refusal](err); ok {
		if r.Reason == domain.Overloaded && r.Quota != "" {
			return commonError(codeThrottling, "%s", r.Detail), nil
		}
		if spell, ok := refusals[r.Reason]; ok {
			return spell(&r.Detail), nil
		}
		return internalError(), err
	}
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e, nil
	}
	if errors.Is(err, engine.ErrStopped) { // usually a full disk: operators must see the reason at once
		return commonError(codeUnavailable, "%s", err), err
	}
	return internalError(), err
}

func internalError() smithy.APIError {
	message := "The request failed inside the service. The log has the cause under this request id."
	return &types.InternalServiceException{Message: &message}
}

func commonError(code, format string, args ...any) *smithy.GenericAPIError {
	return &smithy.GenericAPIError{Code: code, Message: fmt.Sprintf(format, args...)}
}

func serializationError(format string, args ...any) error {
	return commonError(codeSerialization, format, args...)
}

// invalid returns the error for an invalid parameter.
func invalid(format string, args ...any) error {
	return &types.InvalidRequestException{Message: new(fmt.Sprintf(format, args...))}
}

// ignoreRefusal returns nil for a refusal, and otherwise err, which must not be hidden.
func ignoreRefusal(err error) error {
	if _, ok := errors.AsType[*domain.Refusal](err); ok {
		return nil
	}
	return err
}
