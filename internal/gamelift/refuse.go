package gamelift

import (
	"mime"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/internal/domain/excerpt"
)

// Refuse answers a request that does not reach the operations with 403 AccessDeniedException, in the client's protocol.
func (h *Handler) Refuse(w http.ResponseWriter, r *http.Request, message string) {
	codec, _ := route(r)
	w.Header()["X-Amzn-Errortype"] = []string{codeAccessDenied}
	write(w, codec, newRequestID(), statusOf(codeAccessDenied), codec.appendError(nil, codeAccessDenied, message))
}

// The media types of bodies. AWS clients send the first of each.
var (
	jsonMedia = []string{"application/x-amz-json-1.1", "application/x-amz-json-1.0", "application/json"}
	cborMedia = []string{"application/cbor"}
)

// checkMedia requires the right Content-Type. Clients always send it; a web page that sends it, or X-Amz-Target, needs permission
// first (a CORS preflight), which this service does not give.
func checkMedia(r *http.Request, c codec) smithy.APIError {
	want := jsonMedia
	if _, ok := c.(cborCodec); ok {
		want = cborMedia
	}
	said := r.Header.Get("Content-Type")
	if said == want[0] || said == "" && r.ContentLength == 0 {
		return nil
	}
	media, _, err := mime.ParseMediaType(said)
	for _, w := range want {
		if err == nil && media == w {
			return nil
		}
	}
	return commonError(codeMediaType, "Content-Type %q: want %s", excerpt.Short(said), strings.Join(want, ", "))
}
