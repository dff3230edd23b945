package gamelift

import (
	"fmt"
	"net/http"

	"github.com/musterhq/muster/internal/connlimit"
)

// AuthorizeLooking is for other doors on the same port: it checks that a GET without a body is signed, as a request to
// the API would be, with a key that may read everything. Otherwise it returns the HTTP status of the refusal.
func (h *Handler) AuthorizeLooking(r *http.Request) (status int, refused error) {
	_, status, refused = h.authorize(r, look, "look at everything")
	return status, refused
}

// AuthorizeOperating is AuthorizeLooking for requests that change something, which requires the role admin. Their
// parameters are in the query, which is signed; they have no body. It returns the id of the access key.
func (h *Handler) AuthorizeOperating(r *http.Request) (keyID string, status int, refused error) {
	return h.authorize(r, administer, "operate the service")
}

func (h *Handler) authorize(r *http.Request, a access, what string) (keyID string, status int, refused error) {
	caller, unsigned := h.verifier.verify(r, nil, "gamelift")
	switch {
	case unsigned != nil:
		return "", lookingStatus(unsigned.ErrorCode()), unsigned
	case !a.allows(caller.Role):
		return "", http.StatusForbidden, fmt.Errorf("access key %s has the role %s, which may not %s", caller.KeyID, caller.Role, what)
	default:
		connlimit.Prove(r.Context())
		return caller.KeyID, http.StatusOK, nil
	}
}

// AuthorizeAdmin is AuthorizeLooking for changes: it returns the key that has signed a request with this body, which has to be
// one of the role admin.
func (h *Handler) AuthorizeAdmin(r *http.Request, body []byte) (keyID string, status int, refused error) {
	caller, unsigned := h.verifier.verify(r, body, "gamelift")
	switch {
	case unsigned != nil:
		return "", lookingStatus(unsigned.ErrorCode()), unsigned
	case !administer.allows(caller.Role):
		return "", http.StatusForbidden, fmt.Errorf("access key %s has the role %s, which may not change access keys; want admin", caller.KeyID, caller.Role)
	default:
		return caller.KeyID, http.StatusOK, nil
	}
}

// lookingStatus is statusOf for doors that are not of AWS, where throttling has a status of its own.
func lookingStatus(code string) int {
	if code == codeThrottling {
		return http.StatusTooManyRequests
	}
	return statusOf(code)
}
