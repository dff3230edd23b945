package partners

import (
	"crypto/sha256"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// idOf makes the identifier of the record that a call creates. With an X-Request-Id, the identifier is derived from the caller and the
// call, so that a repeat always refers to the same record.
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
