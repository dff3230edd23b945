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
// as user and password of Basic authentication. For temporary credentials, a dot and the session token follow the secret. ok reports whether there is a key.
func Shown(r *http.Request) (id, secret string, ok bool) {
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return strings.Cut(strings.TrimSpace(token), ".")
	}
	return r.BasicAuth()
}
