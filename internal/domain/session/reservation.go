package session

import "github.com/musterhq/muster/internal/domain"

// Reservation describes a new player session.
type Reservation struct {
	PlayerSession domain.PlayerSessionID
	Game          ID
	Player        string
	Data          string
	By            domain.ContactTime // the player must connect by then
	Maker         domain.Maker
	Kept          bool // on the seat that is held for the player, or that an older player session of the player takes
}
