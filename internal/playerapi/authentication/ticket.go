package authentication

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/musterhq/muster/internal/domain"
)

// TicketPrefix begins every login ticket.
const TicketPrefix = "plt_"

// NewTicket makes a login ticket: 256 random bits, then the name of the player, so that the login queue knows the player before
// the ticket is redeemed. The core gets only the hash, so that neither the journal nor a backup contains a usable ticket. The
// hash covers the name: a ticket with another name is unknown.
func NewTicket(player string) (ticket string, hash domain.UUID) {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails: since Go 1.24 it ends the program instead
	ticket = TicketPrefix + base64.RawURLEncoding.EncodeToString(secret) + "." + base64.RawURLEncoding.EncodeToString([]byte(player))
	return ticket, Hash(ticket)
}

// ClaimOfTicket reads the player from a login ticket. The name is not verified until the core redeems the ticket.
func ClaimOfTicket(ticket string) (Claim, bool) {
	_, name, ok := strings.Cut(ticket, ".")
	player, err := base64.RawURLEncoding.DecodeString(name)
	if !ok || err != nil || !strings.HasPrefix(ticket, TicketPrefix) {
		return Claim{}, false
	}
	return Claim{Player: string(player), Ticket: Hash(ticket)}, true
}

// Hash returns the form in which the core stores a token or ticket: the first half of its SHA-256.
func Hash(secret string) domain.UUID {
	sum := sha256.Sum256([]byte(secret))
	return domain.UUID(sum[:16])
}
