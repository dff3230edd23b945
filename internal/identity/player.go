package identity

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
)

// AccessToken is the token of a player's client after its login: of a login session, and of one of its refreshes, or of
// zeros for the login itself. Both names are random. It is derived, so that a client whose answer was lost can get it again,
// and only its hash is stored.
func (s CellSecret) AccessToken(session, refresh [16]byte) string {
	text := append([]byte("access-token\x00"), session[:]...)
	return base64.RawURLEncoding.EncodeToString(s.derive(append(text, refresh[:]...)))
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
