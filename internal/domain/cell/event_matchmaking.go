package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/domain/wire"
)

// RuleSetChanged is a rule set: new, or with other tags.
type RuleSetChanged struct{ RuleSet matchmaking.RuleSet }

// RuleSetRemoved is the end of a rule set.
type RuleSetRemoved struct{ Name string }

// ConfigurationChanged is a matchmaking configuration as it is now.
type ConfigurationChanged struct{ Configuration matchmaking.Configuration }

// ConfigurationRemoved is the end of a matchmaking configuration. No ticket was active in it.
type ConfigurationRemoved struct{ Name string }

// TicketStarted is a new ticket, queued.
type TicketStarted struct{ Ticket matchmaking.Ticket }

// TicketsSearching says that the matchmaker has taken tickets into its pool.
type TicketsSearching struct{ Tickets []TicketNo }

// TicketNo is the number of a ticket.
type TicketNo uint64

// TicketEnded is the end of a ticket without a match.
type TicketEnded struct {
	Ticket TicketNo
	Status matchmaking.Status
	Reason matchmaking.Reason
}

// MatchProposed is a new match; its tickets leave the pool. Match.Of is the configuration of this moment.
type MatchProposed struct {
	Configuration string
	Match         matchmaking.Match
}

// PlayersAnswered is what the players of a ticket have said to their match so far.
type PlayersAnswered struct {
	Ticket  TicketNo
	Answers string // a matchmaking.Answer for each player
}

// MatchAccepted says that nobody has to be asked any more.
type MatchAccepted struct{ ID string }

// MatchDropped is the end of a match without success. Its tickets that have not ended return to the pool.
type MatchDropped struct {
	ID       string
	Reason   matchmaking.Reason
	Returned []TicketNo
}

// MatchCompleted is a match's success: its tickets are completed.
type MatchCompleted struct {
	ID       string
	Game     session.ID
	Sessions []domain.UUID // of the players of all new tickets, in the order of the seats
}

// HostedChanged is what is known now of a game session that came of a match. Its configuration stays what it is.
type HostedChanged struct{ Hosted matchmaking.Hosted }

// HostedTold says that a server process has been told of an update of its backfill.
type HostedTold struct {
	Game   session.ID
	Update uint64
}

// GameSessionMatched is new match data of a game session.
type GameSessionMatched struct {
	ID             session.ID
	MatchmakerData string
}

func (*RuleSetChanged) kind() Kind       { return KindRuleSetChanged }
func (*RuleSetRemoved) kind() Kind       { return KindRuleSetRemoved }
func (*ConfigurationChanged) kind() Kind { return KindConfigurationChanged }
func (*ConfigurationRemoved) kind() Kind { return KindConfigurationRemoved }
func (*TicketStarted) kind() Kind        { return KindTicketStarted }
func (*TicketsSearching) kind() Kind     { return KindTicketsSearching }
func (*TicketEnded) kind() Kind          { return KindTicketEnded }
func (*MatchProposed) kind() Kind        { return KindMatchProposed }
func (*PlayersAnswered) kind() Kind      { return KindPlayersAnswered }
func (*MatchAccepted) kind() Kind        { return KindMatchAccepted }
func (*MatchDropped) kind() Kind         { return KindMatchDropped }
func (*MatchCompleted) kind() Kind       { return KindMatchCompleted }
func (*HostedChanged) kind() Kind        { return KindHostedChanged }
func (*HostedTold) kind() Kind           { return KindHostedTold }
func (*GameSessionMatched) kind() Kind   { return KindGameSessionMatched }

// Fields of the event.
func (e *RuleSetChanged) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.RuleSet, true, (*matchmaking.RuleSet).Fields)
}

// Fields of the event.
func (e *RuleSetRemoved) Fields(c *wire.Codec) { c.String(1, &e.Name) }

// Fields of the event.
func (e *ConfigurationChanged) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Configuration, true, (*matchmaking.Configuration).Fields)
}

// Fields of the event.
func (e *ConfigurationRemoved) Fields(c *wire.Codec) { c.String(1, &e.Name) }

// Fields of the event.
func (e *TicketStarted) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Ticket, true, (*matchmaking.Ticket).Fields)
}

// Fields of the event.
func (e *TicketsSearching) Fields(c *wire.Codec) { wire.Many(c, 1, &e.Tickets, (*TicketNo).fields) }

func (n *TicketNo) fields(c *wire.Codec) { wire.Int(c, 1, n) }

// Fields of the event.
func (e *TicketEnded) Fields(c *wire.Codec) {
	wire.Int(c, 1, &e.Ticket)
	wire.Int(c, 2, &e.Status)
	wire.Int(c, 3, &e.Reason)
}

// Fields of the event.
func (e *MatchProposed) Fields(c *wire.Codec) {
	c.Shared(1, &e.Configuration)
	wire.Sub(c, 2, &e.Match, true, (*matchmaking.Match).Fields)
}

// Fields of the event.
func (e *PlayersAnswered) Fields(c *wire.Codec) {
	wire.Int(c, 1, &e.Ticket)
	c.String(2, &e.Answers)
}

// Fields of the event.
func (e *MatchAccepted) Fields(c *wire.Codec) { c.String(1, &e.ID) }

// Fields of the event.
func (e *MatchDropped) Fields(c *wire.Codec) {
	c.String(1, &e.ID)
	wire.Int(c, 2, &e.Reason)
	wire.Many(c, 3, &e.Returned, (*TicketNo).fields)
}

// Fields of the event.
func (e *MatchCompleted) Fields(c *wire.Codec) {
	c.String(1, &e.ID)
	wire.Text(c, 2, &e.Game)
	wire.Many(c, 3, &e.Sessions, func(id *domain.UUID, c *wire.Codec) { c.UUID(1, id) })
}

// Fields of the event.
func (e *HostedChanged) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Hosted, true, (*matchmaking.Hosted).Fields)
}

// Fields of the event.
func (e *HostedTold) Fields(c *wire.Codec) {
	wire.Text(c, 1, &e.Game)
	wire.Int(c, 2, &e.Update)
}

// Fields of the event.
func (e *GameSessionMatched) Fields(c *wire.Codec) {
	wire.Text(c, 1, &e.ID)
	c.String(2, &e.MatchmakerData)
}

// newMatchmakingEvent returns an empty event of a kind, or nil when there is none.
func newMatchmakingEvent(k Kind) Event {
	switch k {
	case KindRuleSetChanged:
		return &RuleSetChanged{}
	case KindRuleSetRemoved:
		return &RuleSetRemoved{}
	case KindConfigurationChanged:
		return &ConfigurationChanged{}
	case KindConfigurationRemoved:
		return &ConfigurationRemoved{}
	case KindTicketStarted:
		return &TicketStarted{}
	case KindTicketsSearching:
		return &TicketsSearching{}
	case KindTicketEnded:
		return &TicketEnded{}
	case KindMatchProposed:
		return &MatchProposed{}
	case KindPlayersAnswered:
		return &PlayersAnswered{}
	case KindMatchAccepted:
		return &MatchAccepted{}
	case KindMatchDropped:
		return &MatchDropped{}
	case KindMatchCompleted:
		return &MatchCompleted{}
	case KindHostedChanged:
		return &HostedChanged{}
	case KindHostedTold:
		return &HostedTold{}
	case KindGameSessionMatched:
		return &GameSessionMatched{}
	}
	return nil
}
