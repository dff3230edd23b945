package sso

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/signin"
)

// problem says why a call is refused, in AWS's form. Clients only look at the type.
type problem struct {
	kind   string // type of the exception
	status int
	error  string // OAuth error code; empty: the call is one of the portal
	text   string
	wait   int // seconds until the client may retry; 0: not stated
}

func (p *problem) Error() string { return p.kind + ": " + p.text }

// because returns a copy of the problem with another text.
func (p problem) because(text string) *problem {
	p.text = text
	return &p
}

// Errors of SSO-OIDC. Source: the API reference, errors of CreateToken, RegisterClient and StartDeviceAuthorization. Their OAuth codes are those of
// RFC 6749 and RFC 8628.
var (
	invalidRequest     = problem{kind: "InvalidRequestException", status: http.StatusBadRequest, error: "invalid_request"}
	invalidClient      = problem{kind: "InvalidClientException", status: http.StatusUnauthorized, error: "invalid_client"}
	invalidMetadata    = problem{kind: "InvalidClientMetadataException", status: http.StatusBadRequest, error: "invalid_client_metadata"}
	invalidRedirect    = problem{kind: "InvalidRedirectUriException", status: http.StatusBadRequest, error: "invalid_redirect_uri"}
	invalidScope       = problem{kind: "InvalidScopeException", status: http.StatusBadRequest, error: "invalid_scope"}
	invalidGrant       = problem{kind: "InvalidGrantException", status: http.StatusBadRequest, error: "invalid_grant"}
	unauthorizedClient = problem{kind: "UnauthorizedClientException", status: http.StatusBadRequest, error: "unauthorized_client"}
	unsupportedGrant   = problem{kind: "UnsupportedGrantTypeException", status: http.StatusBadRequest, error: "unsupported_grant_type"}
	pending            = problem{kind: "AuthorizationPendingException", status: http.StatusBadRequest, error: "authorization_pending"}
	slowDown           = problem{kind: "SlowDownException", status: http.StatusBadRequest, error: "slow_down"}
	expiredToken       = problem{kind: "ExpiredTokenException", status: http.StatusBadRequest, error: "expired_token"}
	accessDenied       = problem{kind: "AccessDeniedException", status: http.StatusBadRequest, error: "access_denied"}
	internalServer     = problem{kind: "InternalServerException", status: http.StatusInternalServerError, error: "server_error"}
)

// Errors of the portal. Source: the API reference of the portal, errors of GetRoleCredentials.
var (
	badRequest   = problem{kind: "InvalidRequestException", status: http.StatusBadRequest}
	unauthorized = problem{kind: "UnauthorizedException", status: http.StatusUnauthorized, text: "Session token not found or invalid"}
	forbidden    = problem{kind: "ForbiddenException", status: http.StatusForbidden, text: "No access"}
	tooMany      = problem{kind: "TooManyRequestsException", status: http.StatusTooManyRequests}
	failed       = problem{kind: "InternalServerException", status: http.StatusInternalServerError}
)

// failure returns the problem for an error of the service. It logs the error, unless the client has left, the node cannot answer for the cluster, or a
// limit is exceeded.
func (d *Door) failure(call string, of problem, err error) *problem {
	if errors.Is(err, engine.ErrStopped) || errors.Is(err, engine.ErrNotLeading) {
		of.status = http.StatusServiceUnavailable
		return of.because("This node cannot answer for the cluster at the moment; try again.")
	}
	if p, ok := errors.AsType[*domain.Refusal](err); ok && (p.Reason == domain.LimitExceeded || p.Reason == domain.Overloaded) {
		return slowDown.because(p.Detail)
	}
	if !errors.Is(err, context.Canceled) { // else the client has left
		d.config.Log.Error("a request of a sign-in client failed", "operation", call, "error", err)
	}
	return of.because("The request failed inside the service; the log has the cause.")
}

// signInFailed counts a failed attempt, and returns its problem p or, if too many from the address have failed, slow.
func (d *Door) signInFailed(r *http.Request, reason signin.Reason, slow problem, p *problem) *problem {
	s := d.config.Signins.Fail(signin.Failure{From: d.from(r), Reason: reason})
	if s == nil {
		return p
	}
	slow.wait = s.Seconds()
	return slow.because(s.Error())
}

func writeProblem(w http.ResponseWriter, p *problem) {
	body := map[string]string{"message": p.text}
	if p.error != "" {
		body = map[string]string{"error": p.error, "error_description": p.text, "message": p.text} // aws login reads the message
	}
	w.Header().Set("X-Amzn-Errortype", p.kind)
	if p.wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.wait))
	}
	writeJSON(w, p.status, body)
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		panic("sso: answer: " + err.Error()) // texts and numbers always marshal
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // the client has closed the connection
}

// Refuse answers a request that is refused before it reaches an operation.
func Refuse(w http.ResponseWriter, r *http.Request, message string) {
	if pagePaths[r.URL.Path] {
		http.Error(w, message, http.StatusForbidden)
		return
	}
	of := accessDenied
	if portalPaths[r.URL.Path] {
		of = forbidden
	}
	writeProblem(w, of.because(message))
}

func outcome(p *problem) callstats.Outcome {
	switch {
	case p == nil:
		return callstats.OK
	case p.kind == slowDown.kind || p.kind == tooMany.kind:
		return callstats.Throttled
	}
	return callstats.OfStatus(cmp.Or(p.status, http.StatusOK))
}
