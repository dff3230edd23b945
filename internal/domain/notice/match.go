package notice

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Match is a matchmaking event with all its data, because the tickets change afterwards.
type Match struct {
	Type            string // name of the event
	Configuration   string
	Region, Account string // of the configuration's ARN
	ID              string // of the match; empty if there is none
	Tickets         []MatchTicket

	Acceptance         string // outcome in AcceptMatchCompleted
	AcceptanceRequired bool
	AcceptanceTimeout  int32 // seconds
	WaitKnown          bool
	EstimatedWait      int32 // seconds
	Reason, Message    string
	Rules              []MatchRule

	Game      string // ARN
	IPAddress string
	DNSName   string
	Port      uint16
	Compute   string
	Location  string
}

// MatchTicket is a ticket at the time of the event.
type MatchTicket struct {
	No      uint64
	ID      string
	Start   domain.Time
	Players []MatchPlayer
}

// MatchPlayer is a player of a ticket.
type MatchPlayer struct {
	ID, Team string
	Answer   uint8 // 1 accepted, 2 rejected
	Session  domain.PlayerSessionID
}

// MatchRule counts how often a rule passed and failed.
type MatchRule struct {
	Name           string
	Passed, Failed uint64
}

func (m *Match) Fields(c *wire.Codec) {
	c.Shared(1, &m.Type)
	c.Shared(2, &m.Configuration)
	c.Shared(3, &m.Region)
	c.Shared(4, &m.Account)
	c.String(5, &m.ID)
	wire.Many(c, 6, &m.Tickets, (*MatchTicket).fields)
	c.Shared(7, &m.Acceptance)
	c.Bool(8, &m.AcceptanceRequired)
	wire.Int(c, 9, &m.AcceptanceTimeout)
	c.Bool(10, &m.WaitKnown)
	wire.Int(c, 11, &m.EstimatedWait)
	c.Shared(12, &m.Reason)
	c.String(13, &m.Message)
	wire.Many(c, 14, &m.Rules, (*MatchRule).fields)
	c.String(15, &m.Game)
	c.Shared(16, &m.IPAddress)
	c.Shared(17, &m.DNSName)
	wire.Int(c, 18, &m.Port)
	c.Shared(19, &m.Compute)
	c.Shared(20, &m.Location)
}

func (t *MatchTicket) fields(c *wire.Codec) {
	wire.Int(c, 1, &t.No)
	c.String(2, &t.ID)
	wire.Int(c, 3, &t.Start)
	wire.Many(c, 4, &t.Players, (*MatchPlayer).fields)
}

func (p *MatchPlayer) fields(c *wire.Codec) {
	c.String(1, &p.ID)
	c.Shared(2, &p.Team)
	wire.Int(c, 3, &p.Answer)
	wire.ID(c, 4, &p.Session)
}

func (r *MatchRule) fields(c *wire.Codec) {
	c.Shared(1, &r.Name)
	wire.Int(c, 2, &r.Passed)
	wire.Int(c, 3, &r.Failed)
}
