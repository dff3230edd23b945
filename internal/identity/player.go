package identity

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
)

// AccessToken returns the access token of a login session after one of its refreshes; refresh is zero for the login itself.
// Both ids are random. The token is derived, so that a client can get it again if the answer was lost, and only its hash is
// stored. From the second generation of the secret on, the token begins with the number of the generation and a dot.
func (s CellSecret) AccessToken(session, refresh [16]byte) string {
	s = s.current()
	text := append([]byte("access-token\x00"), session[:]...)
	token := base64.RawURLEncoding.EncodeToString(s.derive(append(text, refresh[:]...)))
	if n := s.Generation(); n != firstGeneration {
		token = strconv.FormatUint(uint64(n), 10) + "." + token
	}
	return token
}

// AccessTokenGeneration returns the number of the generation that an access token claims; 0: the claim is invalid. The hash of the token covers the number.
func AccessTokenGeneration(token string) uint32 {
	number, _, ok := strings.Cut(token, ".")
	if !ok {
		return firstGeneration
	}
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil || n <= firstGeneration {
		return 0
	}
	return uint32(n)
}

// ConnectionKey returns the key that signs the tokens that players present to game servers. Its public half is published.
func (s CellSecret) ConnectionKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(s.derive([]byte("connection-token-key")))
}

// PartnerToken returns the token that authorizes a game server for one game instance. It is derived and not stored; each call checks that the
// game instance still runs.
func (s CellSecret) PartnerToken(instance string) string {
	return hex.EncodeToString(s.derive([]byte("partner-token\x00" + instance)))
}
