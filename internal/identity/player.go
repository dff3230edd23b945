package identity

import (
	"crypto/ed25519"
	"encoding/hex"
)

// ConnectionKey signs the tokens that players show to game servers. Its public half is handed out.
func (s CellSecret) ConnectionKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(s.derive([]byte("connection-token-key")))
}

// PartnerToken lets a game server speak for one game instance. It is derived, so nothing of it is stored; whether the game
// instance still runs is looked at with each call.
func (s CellSecret) PartnerToken(instance string) string {
	return hex.EncodeToString(s.derive([]byte("partner-token\x00" + instance)))
}
