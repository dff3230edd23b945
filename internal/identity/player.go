package identity

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
)

// AccessToken is the token of a player's client after its login: of a login session, and of one of its refreshes, or of
// zeros for the login itself. Both names are random. It is derived, so that a client whose answer was lost can get it again,
// and only its hash is stored. One of a later generation of the secret than the first begins with the number of that, and a dot.
func (s CellSecret) AccessToken(session, refresh [16]byte) string {
	s = s.current()
	text := append([]byte("access-token\x00"), session[:]...)
	token := base64.RawURLEncoding.EncodeToString(s.derive(append(text, refresh[:]...)))
	if n := s.Generation(); n != firstGeneration {
		token = strconv.FormatUint(uint64(n), 10) + "." + token
	}
	return token
}

// AccessTokenGeneration is the number of the generation that an access token says it is derived from; 0: it says none that can be. The hash of the token covers the number.
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

// ConnectionKey signs the tokens that players present to game servers. Its public half is published.
func (s CellSecret) ConnectionKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(s.derive([]byte("connection-token-key")))
}

// PartnerToken authorizes a game server for one game instance. It is derived, so nothing of it is stored; each call checks whether the game
// instance still runs.
func (s CellSecret) PartnerToken(instance string) string {
	return hex.EncodeToString(s.derive([]byte("partner-token\x00" + instance)))
}
