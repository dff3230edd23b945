package identity

import (
	"net/http"
	"strings"
)

// Finder finds access keys that work. Keys is one.
type Finder interface {
	Find(id string) (AccessKey, bool)
}

// Shown reads the access key of a caller that cannot sign its requests, and shows id and secret: as "Bearer KEYID.SECRET", or
// with Basic as user and password. It reports whether there is one.
func Shown(r *http.Request) (id, secret string, ok bool) {
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return strings.Cut(strings.TrimSpace(token), ".")
	}
	return r.BasicAuth()
}

// Proven gives the key that works and has this secret. It takes as long when there is no such key.
func Proven(keys Finder, id, secret string) (AccessKey, bool) {
	key, found := keys.Find(id)
	if !Equal(secret, key.Secret) || !found {
		return AccessKey{}, false
	}
	return key, true
}
