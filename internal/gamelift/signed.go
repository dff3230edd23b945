package gamelift

import (
	"net/http"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/identity"
)

// Refused is a request that another door must refuse, with a code of AWS.
type Refused struct {
	Status        int
	Code, Message string
}

// Signed is for other AWS doors on the same port. It reads the body of a request, at most `most` bytes, and returns the principal that signed it for
// an AWS service. Strangers and requests are limited as for the API.
func (h *Handler) Signed(w http.ResponseWriter, r *http.Request, service string, most int64) (by identity.Principal, content []byte, refused *Refused) {
	signed, err := h.verifier.begin(r, service)
	if err != nil {
		discard(w, r)
		return by, nil, refusedBy(err.ErrorCode(), err.ErrorMessage())
	}
	arriving := body{w: w, r: r, most: most, pool: &h.admission, address: signed.address}
	defer arriving.done()
	var own buffers
	if err := arriving.read(&own); err != nil {
		return by, nil, refusedBy(err.ErrorCode(), err.ErrorMessage())
	}
	caller, err := h.verifier.finish(r, own.body, signed)
	if err != nil {
		return by, nil, refusedBy(err.ErrorCode(), err.ErrorMessage())
	}
	connlimit.Prove(r.Context())
	if !h.AllowClient(&caller.Principal) {
		return by, nil, refusedBy(codeThrottling, "Rate exceeded")
	}
	return caller.Principal, own.body, nil
}

// Unsigned is for calls at other doors that strangers may make. It reads the body of a request within the bounds of Signed, and returns the client's
// address.
func (h *Handler) Unsigned(w http.ResponseWriter, r *http.Request, most int64) (from string, content []byte, refused *Refused) {
	arriving := body{w: w, r: r, most: most, pool: &h.admission, address: h.verifier.proxies.Of(r)}
	defer arriving.done()
	var own buffers
	if err := arriving.read(&own); err != nil {
		return "", nil, refusedBy(err.ErrorCode(), err.ErrorMessage())
	}
	return arriving.address, own.body, nil
}

func refusedBy(code, message string) *Refused {
	return &Refused{statusOf(code), code, message}
}

// NewRequestID returns an id that finds a request in the log.
func NewRequestID() string { return newRequestID() }
