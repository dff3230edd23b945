// Package tokenkeys has the public keys with which tokens of others are checked, of an identity provider or in a file, and what all checks of such tokens have
// in common.
package tokenkeys

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Algorithms are those of the tokens that are taken unless settings say otherwise. All have a public key.
var Algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.EdDSA}

// CheckType keeps tokens that are signed with the same key for something else, such as a logout, from being logins; RFC 8725,
// 3.11. Most tokens have no type, or JWT.
func CheckType(header jose.Header, good ...string) error {
	typ, given := header.ExtraHeaders[jose.HeaderType]
	if !given {
		return nil
	}
	name, _ := typ.(string)
	short := strings.TrimPrefix(strings.ToLower(name), "application/")
	if !slices.ContainsFunc(good, func(g string) bool { return strings.EqualFold(g, short) }) {
		return fmt.Errorf("typ %.60q, want %s, or none", fmt.Sprint(typ), strings.Join(good, ", "))
	}
	return nil
}

// CheckKeySize refuses a verified token that was signed with a short RSA key. An RSA signature is as long as its key.
func CheckKeySize(verified *jose.JSONWebSignature) error {
	s := verified.Signatures[0]
	switch jose.SignatureAlgorithm(s.Protected.Algorithm) {
	case jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512:
		if bits := 8 * len(s.Signature); bits < rsaBitsMin {
			return fmt.Errorf("key %.60q is an RSA key of %d bits, want at least %d", s.Protected.KeyID, bits, rsaBitsMin)
		}
	}
	return nil
}

// Audiences are those of the claim aud: one, or a list.
func Audiences(claim any) (all []string) {
	switch x := claim.(type) {
	case string:
		return []string{x}
	case []any:
		for _, a := range x {
			if s, ok := a.(string); ok {
				all = append(all, s)
			}
		}
	}
	return all
}

// Instant is the time in a claim: seconds since 1970.
func Instant(claim any) (time.Time, bool) {
	seconds, ok := claim.(float64)
	if !ok || seconds < 0 || seconds > 1<<40 {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}
