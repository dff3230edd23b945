package gamelift

import (
	"net/http"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/identity"
)

// Authenticate, for other doors on the same port, returns the principal that signed a request with this body as for the API. On failure it
// returns the HTTP status of the refusal.
func (h *Handler) Authenticate(r *http.Request, body []byte) (by identity.Principal, status int, refused error) {
	caller, unsigned := h.verifier.verify(r, body, "gamelift")
	if unsigned != nil {
		status = statusOf(unsigned.ErrorCode())
		if unsigned.ErrorCode() == codeThrottling { // throttling has a status of its own at doors that are not AWS's
			status = http.StatusTooManyRequests
		}
		return by, status, unsigned
	}
	connlimit.Prove(r.Context())
	return caller.Principal, http.StatusOK, nil
}
