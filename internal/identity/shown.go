package identity

import (
	"net/http"
	"strings"
)

// Finder finds valid access keys and temporary credentials for requests from an address. Keys implements it.
type Finder interface {
	With(id, token, from string) (AccessKey, error)
}

// Shown reads the access key of a caller that cannot sign its requests and sends id and secret instead: as "Bearer KEYID.SECRET", or
// with Basic as user and password. With temporary credentials the secret is followed by a dot and the session token. It reports whether there is one.
func Shown(r *http.Request) (id, secret string, ok bool) {
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return strings.Cut(strings.TrimSpace(token), ".")
	}
	return r.BasicAuth()
}
