package identity

import (
	"net/http"
	"strings"
)

// certificateURI stands before the id of an access key in a certificate.
const certificateURI = "urn:muster:access-key:"

// Certified reads which access key the certificate of a client stands for: the one whose id is its common name, or stands in a
// URI of it behind urn:muster:access-key:. Whether the certificate is good, the port has checked with the handshake; one that
// nobody checked does not count, and none that names several keys.
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
	if id == "" {
		id = certificate.Subject.CommonName
	}
	return id, id != ""
}
