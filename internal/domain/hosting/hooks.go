package hosting

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// Hooks is how rooms that hosting does not know take part in what happens to its game sessions. Hosting calls them in the
// transaction that the thing happens in, behind the event unless the comment says otherwise. A refusal of the first ones
// refuses the command.
type Hooks interface {
	// MayBeForeign refuses a seat for a player, who is element i of a field of the call, if player flow knows the player to be
	// somewhere else.
	MayBeForeign(field string, i int, player string) error
	// Awaited is how many seats of a game session are promised to players who hold none yet, beside those who are to get one now.
	Awaited(game session.Ref, but []string) int32
	// ReservationFor is how long the players of a placement have to come; 0: as long as others.
	ReservationFor(placement string) time.Duration

	// SeatTaken says that a player has connected to the game server with a player session.
	SeatTaken(player string, id domain.UUID)
	// SeatEnding runs before the event. Its answer is the Last of the SeatEnded behind the event.
	SeatEnding(player string, id domain.UUID) (last bool)
	SeatEnded(SeatEnd)

	// HostChanged says that the connection or the health of a server process has changed.
	HostChanged(process fleet.Key)
	// GameTerminating says that a game session is to end with its process.
	GameTerminating(id session.ID)
	// GameEnding says that a game session ends, before its player sessions do.
	GameEnding(r session.Ref, cause session.EndCause)
	// GameEmptied says that the player sessions of a game session that ends have ended.
	GameEmptied(id session.ID)
	// PlacementEnded says that a placement has ended; on success the seats of its players are reserved.
	PlacementEnded(id string, status placement.Status)
	// Placed says that a placement that has ended gave its players a game session.
	Placed(id string, game session.ID)

	// KeptSeat is the seat that a player has by a membership; 0 for none. It reads the state while an event is applied.
	KeptSeat(player string) session.Ref
	// GameGone runs while the end of a game session is applied.
	GameGone(id session.ID)
}

// SeatEnd is the end of a player session that had a seat.
type SeatEnd struct {
	Session domain.UUID
	Player  string
	Game    session.Ref
	Status  session.PlayerStatus // TimedOut or Completed
	Last    bool                 // see Hooks.SeatEnding
}

// endSeat ends a player session, and tells those who take part.
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

// hostChanged tells those who take part that the connection or the health of a server process has changed.
func (t *Tx) hostChanged(process fleet.Key) {
	if t.hooks != nil {
		t.hooks.HostChanged(process)
	}
}

// mayBeForeign is Hooks.MayBeForeign.
func (t *Tx) mayBeForeign(field string, i int, player string) error {
	if t.hooks == nil {
		return nil
	}
	return t.hooks.MayBeForeign(field, i, player)
}
