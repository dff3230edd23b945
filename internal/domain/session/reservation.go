package session

import "github.com/musterhq/muster/internal/domain"

// Reservation is what a seat is taken with.
type Reservation struct {
	PlayerSession domain.PlayerSessionID
	Game          ID
	Player        string
	Data          string
	By            domain.ContactTime // until then the player has to come
	Maker         domain.Maker
	Kept          bool // on the seat that is kept for the player, or that an older player session still sits on
}
