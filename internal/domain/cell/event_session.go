package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/domain/wire"
)

// GameSessionCreated says that a server process was given a game session. Address, port and location are those of the
// process and its compute.
type GameSessionCreated struct {
	ID             session.ID
	Process        fleet.Key
	Name           string
	Data           string
	MatchmakerData string
	Properties     []session.Property
	Creator        string
	PlayersMax     int32
	FullProtection bool
	ActivateBy     domain.ContactTime
	Parameters     uint64
	Placement      string // id of the placement that it is made for
}

// GameSessionPrompted says that the process is about to be told of its game session. It is never told again.
type GameSessionPrompted struct{ ID session.ID }

// GameSessionActivated says that players may come.
type GameSessionActivated struct{ ID session.ID }

// GameSessionChanged is what can be changed about a game session, as it is now.
type GameSessionChanged struct {
	ID             session.ID
	Name           string
	PlayersMax     int32
	DenyPlayers    bool
	FullProtection bool
	Properties     []session.Property
	Policy         uint64
}

// GameSessionTerminating says that the game session is to end as soon as its process does.
type GameSessionTerminating struct{ ID session.ID }

// GameSessionEnded is the end of a game session. Its player sessions ended before, in the same transaction.
type GameSessionEnded struct {
	ID     session.ID
	Reason session.StatusReason
	Cause  session.EndCause
}

// PlayerReserved says that a seat is taken for a player until ReserveBy.
type PlayerReserved struct {
	PlayerSession domain.UUID
	GameSession   session.ID
	Player        string
	Data          string
	ReserveBy     domain.ContactTime
	Maker         domain.Maker
	Kept          bool // on the seat that is kept for the player, or that an older player session still sits on
}

// PlayerAccepted says that the player has connected to the game server.
type PlayerAccepted struct {
	PlayerSession domain.UUID
	Request       uint64
}

// PlayerEnded is the end of a player session.
type PlayerEnded struct {
	PlayerSession domain.UUID
	Status        session.PlayerStatus
}

// Forgotten says that the Count records that ended first are safe in the archive and leave memory.
type Forgotten struct{ Count int64 }

func (*GameSessionCreated) kind() Kind     { return KindGameSessionCreated }
func (*GameSessionPrompted) kind() Kind    { return KindGameSessionPrompted }
func (*GameSessionActivated) kind() Kind   { return KindGameSessionActivated }
func (*GameSessionChanged) kind() Kind     { return KindGameSessionChanged }
func (*GameSessionTerminating) kind() Kind { return KindGameSessionTerminating }
func (*GameSessionEnded) kind() Kind       { return KindGameSessionEnded }
func (*PlayerReserved) kind() Kind         { return KindPlayerReserved }
func (*PlayerAccepted) kind() Kind         { return KindPlayerAccepted }
func (*PlayerEnded) kind() Kind            { return KindPlayerEnded }
func (*Forgotten) kind() Kind              { return kindForgotten }

// Fields of the event.
func (e *GameSessionCreated) Fields(c *wire.Codec) {
	wire.Text(c, 1, &e.ID)
	wire.Sub(c, 2, &e.Process, true, (*fleet.Key).Fields)
	c.String(3, &e.Name)
	c.String(4, &e.Data)
	c.String(5, &e.MatchmakerData)
	wire.Many(c, 6, &e.Properties, (*session.Property).Fields)
	c.String(7, &e.Creator)
	wire.Int(c, 8, &e.PlayersMax)
	c.Bool(9, &e.FullProtection)
	wire.Int(c, 10, &e.ActivateBy)
	c.Fixed64(11, &e.Parameters)
	c.String(12, &e.Placement)
}

// Fields of the event.
func (e *GameSessionPrompted) Fields(c *wire.Codec) { wire.Text(c, 1, &e.ID) }

// Fields of the event.
func (e *GameSessionActivated) Fields(c *wire.Codec) { wire.Text(c, 1, &e.ID) }

// Fields of the event.
func (e *GameSessionChanged) Fields(c *wire.Codec) {
	wire.Text(c, 1, &e.ID)
	c.String(2, &e.Name)
	wire.Int(c, 3, &e.PlayersMax)
	c.Bool(4, &e.DenyPlayers)
	c.Bool(5, &e.FullProtection)
	wire.Many(c, 6, &e.Properties, (*session.Property).Fields)
	c.Fixed64(7, &e.Policy)
}

// Fields of the event.
func (e *GameSessionTerminating) Fields(c *wire.Codec) { wire.Text(c, 1, &e.ID) }

// Fields of the event.
func (e *GameSessionEnded) Fields(c *wire.Codec) {
	wire.Text(c, 1, &e.ID)
	wire.Int(c, 2, &e.Reason)
	wire.Int(c, 3, &e.Cause)
}

// Fields of the event.
func (e *PlayerReserved) Fields(c *wire.Codec) {
	c.UUID(1, &e.PlayerSession)
	wire.Text(c, 2, &e.GameSession)
	c.String(3, &e.Player)
	c.String(4, &e.Data)
	wire.Int(c, 5, &e.ReserveBy)
	c.Bool(6, &e.Kept)
	c.Fixed64(7, (*uint64)(&e.Maker))
}

// Fields of the event.
func (e *PlayerAccepted) Fields(c *wire.Codec) {
	c.UUID(1, &e.PlayerSession)
	c.Fixed64(2, &e.Request)
}

// Fields of the event.
func (e *PlayerEnded) Fields(c *wire.Codec) {
	c.UUID(1, &e.PlayerSession)
	wire.Int(c, 2, &e.Status)
}

// Fields of the event.
func (e *Forgotten) Fields(c *wire.Codec) { wire.Int(c, 1, &e.Count) }
