package partners

import (
	"crypto/sha256"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// idOf makes the identifier that a call needs. With an X-Request-Id it is the same each time that one caller makes one call, so that a
// repeat is about the same record, however long after.
func idOf(call, by, request string) domain.UUID {
	if request == "" {
		return objects.NewID()
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{call, by, request}, "\x00")))
	u := domain.UUID(sum[:16])
	u[6] = u[6]&0x0f | 0x40 // version 4
	u[8] = u[8]&0x3f | 0x80 // variant 1
	return u
}
