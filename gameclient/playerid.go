package gameclient

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// NewPlayerID returns a random UUID as the id of a player without an account, with or without braces around it and dashes in it. Keep the
// id for as long as friends should find the player with it.
func NewPlayerID(braces, dashes bool) string {
	var id [16]byte
	rand.Read(id[:]) // never fails; written out, since a package for UUIDs would become a dependency of every game
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	digits := hex.EncodeToString(id[:])
	if dashes {
		digits = strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")
	}
	if braces {
		digits = "{" + digits + "}"
	}
	return digits
}
