package session

import (
	"github.com/musterhq/muster/internal/domain/exit"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Fields of a GameSession. Restoring counts its seats and player sessions again.
func (g *GameSession) Fields(c *wire.Codec) {
	wire.Text(c, 1, &g.ID)
	c.Shared(2, &g.FleetID)
	c.Shared(3, &g.Location)
	c.Shared(4, &g.Region)
	c.Shared(5, &g.Account)
	c.String(6, &g.Name)
	c.String(7, &g.Data)
	c.String(8, &g.MatchmakerData)
	wire.Many(c, 9, &g.Properties, (*Property).Fields)
	c.String(10, &g.Creator)
	c.Shared(11, &g.ComputeName)
	c.String(12, &g.ProcessID)
	c.Shared(13, &g.IPAddress)
	c.Shared(14, &g.DNSName)
	wire.Int(c, 15, &g.Port)
	wire.Int(c, 16, &g.PlayersMax)
	wire.Int(c, 17, &g.Status)
	wire.Int(c, 18, &g.StatusReason)
	c.Bool(19, &g.DenyPlayers)
	c.Bool(20, &g.FullProtection)
	c.Bool(21, &g.Prompted)
	wire.Int(c, 22, &g.Created)
	wire.Int(c, 23, &g.Ended)
	wire.Int(c, 24, &g.ActivateBy)
	c.Fixed64(25, &g.Parameters)
	c.Fixed64(26, &g.Policy)
	wire.Int(c, 27, &g.EndedNo)
	c.String(28, &g.Placement)
	c.Bool(29, &g.Replaced)
	wire.Int(c, 30, &g.PromptedAt)
	wire.Int(c, 31, &g.ActivatedAt)
	wire.Int(c, 32, &g.TerminatingAt)
	wire.Int(c, 33, &g.Cause)
	wire.Optional(c, 34, &g.Exit, (*exit.Report).Fields)
	c.Fixed64(35, (*uint64)(&g.Holder))
}

// Fields of a PlayerSession. Its game session is named by the message around it.
func (p *PlayerSession) Fields(c *wire.Codec) {
	wire.ID(c, 1, &p.ID)
	c.String(2, &p.Player)
	c.String(3, &p.Data)
	wire.Int(c, 4, &p.Created)
	wire.Int(c, 5, &p.Ended)
	wire.Int(c, 6, &p.ReserveBy)
	wire.Int(c, 7, &p.Status)
	c.Fixed64(8, &p.Accept)
	wire.Int(c, 9, &p.EndedNo)
	wire.Int(c, 10, &p.Accepted)
	c.Fixed64(11, (*uint64)(&p.Maker))
	c.Fixed64(12, (*uint64)(&p.Holder))
}
