package playerapi

import (
	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/domain"
)

// newID makes a random identifier.
func newID() domain.UUID { return domain.UUID(uuid.New()) }

// version4 makes a UUID of a hash.
func version4(u domain.UUID) domain.UUID {
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}
