package hosting

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// Hooks lets rooms that hosting does not import take part in the life of game sessions. Hosting calls each hook in the same transaction,
// after the event unless the comment says otherwise. A refusal by a hook of the first group refuses the command.
type Hooks interface {
	// MayBeForeign refuses a seat to a player if player flow has the player in another search or game. The player is element i of a field
	// of the call.
	MayBeForeign(field string, i int, player string) error
	// Awaited returns the number of seats of a game session that are promised to players without a seat, apart from the players in `but`,
	// who get theirs now.
	Awaited(game session.GameRef, but []string) int32
	// ReservationFor returns how long the players of a placement have to connect; 0 for the default.
	ReservationFor(placement string) time.Duration

	// SeatTaken runs when a player has connected to the game server with a player session.
	SeatTaken(player string, id domain.PlayerSessionID)
	// SeatEnding runs before the event. Its result becomes Last of the SeatEnded that runs after the event.
	SeatEnding(player string, id domain.PlayerSessionID) (last bool)
	SeatEnded(SeatEnd)

	// HostChanged runs when the connection or the health of a server process has changed.
	HostChanged(process fleet.Key)
	// GameTerminating runs when the process of a game session was asked to end.
	GameTerminating(id session.ID)
	// GameEnding runs when a game session ends, before its player sessions end.
	GameEnding(r session.GameRef, cause session.EndCause)
	// GameEmptied runs when all player sessions of an ending game session have ended.
	GameEmptied(id session.ID)
	// PlacementEnded runs when a placement has ended; on success the seats of its players are reserved.
	PlacementEnded(id string, status placement.Status)
	// Placed runs when a fulfilled placement has given its players a game session.
	Placed(id string, game session.ID)

	// KeptSeat returns the seat that a membership holds for a player; 0 for none. It runs while an event is applied and only reads.
	KeptSeat(player string) session.SeatRef
	// GameGone runs while the event that ends a game session is applied.
	GameGone(id session.ID)
}

// SeatEnd describes the end of a player session that had a seat.
type SeatEnd struct {
	Session domain.PlayerSessionID
	Player  string
	Game    session.GameRef
	Status  session.PlayerStatus // TimedOut or Completed
	Last    bool                 // see Hooks.SeatEnding
}

// endSeat ends a player session and calls the hooks.
func (t *Tx) endSeat(p *session.PlayerSession, status session.PlayerStatus) {
	end := SeatEnd{Session: p.ID, Player: p.Player, Game: p.Game, Status: status}
	if t.hooks != nil && status == session.Completed {
		end.Last = t.hooks.SeatEnding(end.Player, end.Session)
	}
	t.Emit(&PlayerEnded{end.Session, status})
	if t.hooks != nil {
		t.hooks.SeatEnded(end)
	}
}

func (t *Tx) hostChanged(process fleet.Key) {
	if t.hooks != nil {
		t.hooks.HostChanged(process)
	}
}

func (t *Tx) mayBeForeign(field string, i int, player string) error {
	if t.hooks == nil {
		return nil
	}
	return t.hooks.MayBeForeign(field, i, player)
}
