package gamelift

import (
	"net/http"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/identity"
)

// Authenticate is for other doors on the same port: it returns the principal that has signed a request with this body, as a request to the
// API would be. Otherwise it returns the HTTP status of the refusal.
func (h *Handler) Authenticate(r *http.Request, body []byte) (by identity.Principal, status int, refused error) {
	caller, unsigned := h.verifier.verify(r, body, "gamelift")
	if unsigned != nil {
		status = statusOf(unsigned.ErrorCode())
		if unsigned.ErrorCode() == codeThrottling { // which has a status of its own where the door is not of AWS
			status = http.StatusTooManyRequests
		}
		return by, status, unsigned
	}
	connlimit.Prove(r.Context())
	return caller.Principal, http.StatusOK, nil
}
