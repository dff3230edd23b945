// Package inspection reads the state of player flow for operators, tests and metrics: whether its invariants hold (Audit, Survey), what
// keeps a player in place (ExplainStuck, FlowTimers), and which players and how many records exist. It changes nothing.
package inspection

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
)

// Hosting is the part of hosting with which player flow's records are compared.
type Hosting interface {
	FindGame(id session.ID) (session.GameRef, bool)
	Game(r session.GameRef) *session.GameSession
	FindPlayer(id domain.PlayerSessionID) (session.PlayerRef, bool)
	PlayerSession(r session.PlayerRef) *session.PlayerSession
	Process(r fleet.ProcessRef) *fleet.Process
	FindPlacement(id string) (placement.Ref, bool)
	Placement(r placement.Ref) *placement.Placement
}

// Matchmaking is the part of matchmaking with which player flow's records are compared.
type Matchmaking interface {
	FindTicket(id string) (matchmaking.TicketRef, bool)
	Ticket(r matchmaking.TicketRef) *matchmaking.Ticket
}

// Inspection has the state of player flow, and the rooms with which it is compared.
type Inspection struct {
	*playerflow.State
	hosting     Hosting
	matchmaking Matchmaking
}

// New returns an Inspection of a room.
func New(state *playerflow.State, hosting Hosting, m Matchmaking) *Inspection {
	return &Inspection{state, hosting, m}
}

// View reads the state.
type View struct {
	kernel.Reader
	c *Inspection
}

// View returns a View. It is valid until the next command is executed.
func (c *Inspection) View() View { return View{c.Reader(), c} }
