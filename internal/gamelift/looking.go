package gamelift

import (
	"fmt"
	"net/http"
)

// AuthorizeLooking is for other doors on the same port: it tells whether a GET without a body is signed, as a request to
// the API would be, with a key that may look at everything. If not, it says with which HTTP status to refuse.
func (h *Handler) AuthorizeLooking(r *http.Request) (status int, refused error) {
	caller, unsigned := h.verifier.verify(r, nil, "gamelift")
	switch {
	case unsigned != nil:
		return statusOf(unsigned.ErrorCode()), unsigned
	case !look.allows(caller.Role):
		return http.StatusForbidden, fmt.Errorf("access key %s has the role %s, which may not look at everything", caller.KeyID, caller.Role)
	default:
		return http.StatusOK, nil
	}
}
