package matchmaking

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/wire"
)

func (r *RuleSet) Fields(c *wire.Codec) {
	c.String(1, &r.Name)
	c.Shared(2, &r.Region)
	c.Shared(3, &r.Account)
	c.String(4, &r.Body)
	wire.Int(c, 5, &r.Created)
	wire.Many(c, 6, &r.Tags, (*keyvalue.Pair).Fields)
	c.Fixed64(7, (*uint64)(&r.Holder))
}

func (c *Configuration) Fields(to *wire.Codec) {
	to.Shared(1, &c.Name)
	to.Shared(2, &c.Region)
	to.Shared(3, &c.Account)
	wire.Int(to, 4, &c.Created)
	to.String(5, &c.Description)
	to.Shared(6, &c.RuleSet)
	wire.Int(to, 7, &c.Version)
	to.Duration(8, &c.RequestTimeout, time.Second)
	to.Duration(9, &c.AcceptanceTimeout, time.Second)
	to.Bool(10, &c.AcceptanceRequired)
	to.Bool(11, &c.Standalone)
	to.Strings(12, &c.Queues)
	wire.Int(to, 13, &c.AdditionalPlayers)
	to.Bool(14, &c.AutoBackfill)
	wire.Many(to, 15, &c.Properties, (*keyvalue.Pair).Fields)
	to.Shared(16, &c.Data)
	to.Shared(17, &c.NotificationTarget)
	to.Shared(18, &c.CustomEventData)
	wire.Many(to, 19, &c.Tags, (*keyvalue.Pair).Fields)
	to.Fixed64(20, (*uint64)(&c.Holder))
}

func (t *Ticket) Fields(c *wire.Codec) {
	c.String(1, &t.ID)
	wire.Int(c, 2, &t.No)
	c.Shared(3, &t.Configuration)
	c.Shared(4, &t.Region)
	c.Shared(5, &t.Account)
	wire.Int(c, 6, &t.Status)
	wire.Int(c, 7, &t.Reason)
	c.Bool(8, &t.Backfill)
	c.Bool(9, &t.automatic)
	wire.Int(c, 10, &t.Generation)
	wire.Int(c, 11, &t.Players)
	wire.Int(c, 12, &t.Start)
	wire.Int(c, 13, &t.End)
	wire.Int(c, 14, &t.TimeoutAt)
	c.String(15, &t.Roster)
	c.String(16, &t.Game)
	c.Shared(17, &t.GameRegion)
	wire.Optional(c, 18, &t.Outcome, (*Outcome).fields)
	wire.Int(c, 19, &t.EndedNo)
	wire.Int(c, 20, &t.Slots)
	c.Fixed64(21, (*uint64)(&t.Maker))
	wire.Int(c, 22, &t.Owner)
	c.Fixed64(23, (*uint64)(&t.Holder))
}

func (o *Outcome) fields(c *wire.Codec) {
	c.String(1, &o.Match)
	c.Shared(2, &o.Team)
	c.Bytes(3, &o.Answers)
	wire.Many(c, 4, &o.Sessions, sessionFields)
	c.String(5, &o.Game)
	c.Shared(6, &o.GameRegion)
	c.Shared(7, &o.IPAddress)
	c.Shared(8, &o.DNSName)
	wire.Int(c, 9, &o.Port)
}

func sessionFields(id *domain.PlayerSessionID, c *wire.Codec) { wire.ID(c, 1, id) }

func (m *Match) Fields(c *wire.Codec) {
	c.String(1, &m.ID)
	wire.Optional(c, 2, &m.Of, (*Configuration).Fields)
	wire.Many(c, 3, &m.Seats, (*Seat).Fields)
	wire.Int(c, 4, &m.Proposed)
	wire.Int(c, 5, &m.AcceptBy)
	wire.Int(c, 6, &m.PlayersMax)
	c.Shared(7, &m.Region)
	wire.Many(c, 8, &m.Counts, (*RuleCount).Fields)
}

func (s *Seat) Fields(c *wire.Codec) {
	wire.Int(c, 1, &s.Ticket)
	c.Shared(2, &s.Team)
}

func (r *RuleCount) Fields(c *wire.Codec) {
	wire.Int(c, 1, &r.Rule)
	wire.Int(c, 2, &r.Passed)
	wire.Int(c, 3, &r.Failed)
}

func (h *Hosted) Fields(c *wire.Codec) {
	c.String(1, &h.Game)
	c.String(2, &h.Match)
	wire.Optional(c, 3, &h.Of, (*Configuration).Fields)
	c.String(4, &h.Roster)
	c.Bool(5, &h.Automatic)
	wire.Int(c, 6, &h.Updates)
	wire.Int(c, 7, &h.Told)
	wire.Int(c, 8, &h.Why)
	c.String(9, &h.Ticket)
}

func (r *Recent) Fields(c *wire.Codec) {
	c.Shared(1, &r.Configuration)
	samples := r.samples()
	wire.Many(c, 2, &samples, (*sample).fields)
	r.restore(samples)
}

func (s *sample) fields(c *wire.Codec) {
	wire.Int(c, 1, &s.at)
	wire.Int(c, 2, &s.wait)
}
