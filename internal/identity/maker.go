package identity

import (
	"crypto/sha256"
	"encoding/binary"
)

// MakerOf is the number with which the core marks objects made with an access key of the role client: the first
// eight bytes of the SHA-256 of its id. For other roles it is 0: they may change objects of all keys.
func MakerOf(keyID string, role Role) uint64 {
	if role != Client {
		return 0
	}
	sum := sha256.Sum256([]byte(keyID))
	return max(binary.BigEndian.Uint64(sum[:8]), 1)
}
