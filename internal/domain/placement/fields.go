package placement

import (
	"time"

	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/wire"
)

func (q *Queue) Fields(c *wire.Codec) {
	c.String(1, &q.Name)
	c.Shared(2, &q.Region)
	c.Shared(3, &q.Account)
	wire.Int(c, 4, &q.Created)
	c.Duration(5, &q.Timeout, time.Second)
	c.Strings(6, &q.Destinations)
	wire.Many(c, 7, &q.LatencyPolicies, (*LatencyPolicy).fields)
	c.Strings(8, &q.AllowedLocations)
	wire.Many(c, 9, &q.PriorityOrder, func(x *Criterion, c *wire.Codec) { wire.Int(c, 1, x) })
	c.Strings(10, &q.LocationOrder)
	c.String(11, &q.CustomEventData)
	c.String(12, &q.NotificationTarget)
	wire.Many(c, 13, &q.Tags, (*keyvalue.Pair).Fields)
	c.Fixed64(14, (*uint64)(&q.Holder))
}

func (p *LatencyPolicy) fields(c *wire.Codec) {
	wire.Int(c, 1, &p.Cap)
	c.Duration(2, &p.Duration, time.Second)
}

func (p *Placement) Fields(c *wire.Codec) {
	c.String(1, &p.ID)
	c.Shared(2, &p.Queue)
	c.Shared(3, &p.Region)
	c.Shared(4, &p.Account)
	wire.Int(c, 5, &p.Status)
	wire.Int(c, 6, &p.Start)
	wire.Int(c, 7, &p.End)
	wire.Int(c, 8, &p.TimeoutAt)
	wire.Int(c, 9, &p.PlayersMax)
	c.String(10, &p.Name)
	c.String(11, &p.Data)
	c.String(12, &p.MatchmakerData)
	wire.Many(c, 13, &p.Properties, (*keyvalue.Pair).Fields)
	wire.Many(c, 14, &p.Latencies, (*Latency).fields)
	wire.Many(c, 15, &p.Players, (*Player).fields)
	wire.Optional(c, 16, &p.Override, (*Override).fields)
	c.Bool(17, &p.PassedOnce)
	c.String(18, &p.Game)
	c.Shared(19, &p.IPAddress)
	c.Shared(20, &p.DNSName)
	wire.Int(c, 21, &p.Port)
	c.Shared(22, &p.Location)
	wire.Many(c, 23, &p.Tried, (*Try).Fields)
	wire.Int(c, 24, &p.EndedNo)
	wire.Int(c, 25, &p.No)
	c.Shared(26, &p.GameRegion)
	c.Strings(27, &p.Regions)
	c.Fixed64(28, (*uint64)(&p.Maker))
	wire.Many(c, 29, &p.Turns, (*Turn).fields)
	c.Fixed64(30, (*uint64)(&p.Holder))
}

func (t *Turn) fields(c *wire.Codec) {
	c.Shared(1, &t.Alias)
	wire.Int(c, 2, &t.No)
	c.Bool(3, &t.New)
}

func (l *Latency) fields(c *wire.Codec) {
	c.Shared(1, &l.Player)
	c.Shared(2, &l.Location)
	c.Float32(3, &l.Milliseconds)
}

func (p *Player) fields(c *wire.Codec) {
	c.String(1, &p.Player)
	c.String(2, &p.Data)
	wire.ID(c, 3, &p.ID)
	c.Fixed64(4, (*uint64)(&p.Maker))
}

func (o *Override) fields(c *wire.Codec) {
	c.Strings(1, &o.Locations)
	c.Bool(2, &o.Only)
}

func (t *Try) Fields(c *wire.Codec) {
	wire.Int(c, 1, &t.At)
	c.Shared(2, &t.Fleet)
	c.Shared(3, &t.Location)
	c.String(4, &t.Process)
	wire.Int(c, 5, &t.Outcome)
	c.String(6, &t.Detail)
}
