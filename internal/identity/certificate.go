package identity

import (
	"cmp"
	"net/http"
	"strings"
)

// certificateURI is the prefix of an access key's id in a certificate.
const certificateURI = "urn:muster:access-key:"

// Certified reads which access key the certificate of a client stands for: the one whose id is its common name, or part of a
// URI in it after urn:muster:access-key:. The port has verified the certificate in the handshake. A certificate that
// was not verified does not count, nor does one that names several keys.
func Certified(r *http.Request) (id string, ok bool) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return "", false
	}
	certificate := r.TLS.VerifiedChains[0][0]
	for _, uri := range certificate.URIs {
		name, ours := strings.CutPrefix(uri.String(), certificateURI)
		switch {
		case !ours:
		case id != "" && id != name:
			return "", false
		default:
			id = name
		}
	}
	id = cmp.Or(id, certificate.Subject.CommonName)
	return id, id != ""
}
