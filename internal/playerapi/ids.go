package playerapi

import (
	"crypto/rand"

	"github.com/musterhq/muster/internal/domain"
)

// newID makes a random identifier.
func newID() (u domain.UUID) {
	_, _ = rand.Read(u[:]) // never fails: since Go 1.24 it ends the program instead
	return version4(u)
}

func version4(u domain.UUID) domain.UUID {
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}
