package identity

import (
	"cmp"
	"net/http"
	"strings"
)

// certificateURI is the prefix of an access key's id in a certificate.
const certificateURI = "urn:muster:access-key:"

// Certified returns the id of the access key that a client's certificate names, in its common name or in a URI after
// urn:muster:access-key:. The port verified the certificate in the handshake. Certified ignores certificates that were not
// verified, and those that name several keys.
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
