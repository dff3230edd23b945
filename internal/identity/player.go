package identity

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
)

// AccessToken is what the client of a player shows after its login: of a login session, and of one of its refreshes, or of
// zeros for the login itself. Both names are random. It is derived, so that a client whose answer was lost gets it again,
// and only its hash is stored.
func (s CellSecret) AccessToken(session, refresh [16]byte) string {
	text := append([]byte("access-token\x00"), session[:]...)
	return base64.RawURLEncoding.EncodeToString(s.derive(append(text, refresh[:]...)))
}

// ConnectionKey signs the tokens that players show to game servers. Its public half is handed out.
func (s CellSecret) ConnectionKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(s.derive([]byte("connection-token-key")))
}

// PartnerToken lets a game server speak for one game instance. It is derived, so nothing of it is stored; whether the game
// instance still runs is looked at with each call.
func (s CellSecret) PartnerToken(instance string) string {
	return hex.EncodeToString(s.derive([]byte("partner-token\x00" + instance)))
}
