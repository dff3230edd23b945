package hostproof

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// A join token is "muster-join.", an id of 16 hexadecimal digits, a dot and a secret of 32 bytes in base64url.
const (
	tokenStart = "muster-join."
	idDigits   = 16
	secretMax  = 64
)

// NewToken makes a join token, with its public id and the hash of its secret, which the service keeps.
func NewToken() (token, id, hash string) {
	var b [8 + 32]byte
	_, _ = rand.Read(b[:]) // it never fails
	id = hex.EncodeToString(b[:8])
	secret := base64.RawURLEncoding.EncodeToString(b[8:])
	return tokenStart + id + "." + secret, id, hashOf(secret)
}

// ReadToken returns the id of a token and the hash of its secret; false if it does not have the form of a token.
func ReadToken(token string) (id, hash string, ok bool) {
	rest, ok := strings.CutPrefix(token, tokenStart)
	id, secret, dot := strings.Cut(rest, ".")
	if !ok || !dot || len(id) != idDigits || secret == "" || len(secret) > secretMax {
		return "", "", false
	}
	return id, hashOf(secret), true
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
