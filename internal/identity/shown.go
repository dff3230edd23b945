package identity

import (
	"net/http"
	"strings"
)

// Finder finds valid access keys. Keys implements it.
type Finder interface {
	Find(id string) (AccessKey, bool)
}

// Shown reads the access key of a caller that cannot sign its requests and sends id and secret instead: as "Bearer KEYID.SECRET", or
// with Basic as user and password. It reports whether there is one.
func Shown(r *http.Request) (id, secret string, ok bool) {
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return strings.Cut(strings.TrimSpace(token), ".")
	}
	return r.BasicAuth()
}

// Proven returns the valid key with this secret. It takes the same time when there is no such key.
func Proven(keys Finder, id, secret string) (AccessKey, bool) {
	key, found := keys.Find(id)
	if !Equal(secret, key.Secret) || !found {
		return AccessKey{}, false
	}
	return key, true
}
