package fleet

import (
	"time"

	"github.com/musterhq/muster/internal/domain/exit"
	"github.com/musterhq/muster/internal/domain/wire"
)

func (l *Location) Fields(c *wire.Codec) {
	c.String(1, &l.Name)
	c.Shared(2, &l.Region)
	c.Shared(3, &l.Account)
	wire.Int(c, 4, &l.Created)
	wire.Many(c, 5, &l.Tags, (*Tag).Fields)
	c.Fixed64(6, (*uint64)(&l.Holder))
}

func (f *Fleet) Fields(c *wire.Codec) {
	c.String(1, &f.ID)
	c.Shared(2, &f.Region)
	c.Shared(3, &f.Account)
	c.String(4, &f.Name)
	c.String(5, &f.Description)
	wire.Int(c, 6, &f.Status)
	wire.Int(c, 7, &f.Created)
	c.Bool(8, &f.FullProtection)
	wire.Optional(c, 9, &f.CreationPolicy, (*CreationPolicy).fields)
	c.Strings(10, &f.MetricGroups)
	c.Shared(11, &f.CertificateType)
	wire.Optional(c, 12, &f.Cost, func(s *string, c *wire.Codec) { c.String(1, s) })
	wire.Many(c, 13, &f.Locations, (*FleetLocation).fields)
	wire.Many(c, 14, &f.Tags, (*Tag).Fields)
	wire.Optional(c, 15, &f.Runtime, (*Runtime).fields)
	wire.Optional(c, 16, &f.Managed, (*Managed).fields)
	c.Fixed64(17, (*uint64)(&f.Holder))
}

func (p *CreationPolicy) fields(c *wire.Codec) {
	wire.Int(c, 1, &p.Sessions)
	c.Duration(2, &p.Period, time.Minute)
}

func (l *FleetLocation) fields(c *wire.Codec) {
	c.Shared(1, &l.Name)
	wire.Int(c, 2, &l.Status)
	wire.Sub(c, 3, &l.Capacity, l.Capacity != Capacity{}, (*Capacity).fields)
	c.Bool(4, &l.ScalingStopped)
}

func (x *Compute) Fields(c *wire.Codec) {
	c.Shared(1, &x.FleetID)
	c.String(2, &x.Name)
	c.Shared(3, &x.Location)
	c.String(4, &x.IPAddress)
	c.String(5, &x.DNSName)
	c.String(6, &x.CertificatePath)
	wire.Int(c, 7, &x.Created)
	wire.Int(c, 8, &x.TokenGeneration)
	wire.Int(c, 9, &x.TokenExpires)
	wire.Int(c, 10, &x.PreviousExpires)
	wire.Int(c, 11, &x.ProcessesEver)
	wire.Many(c, 12, &x.Tags, (*Tag).Fields)
	c.UUID(13, &x.Registration)
	wire.Int(c, 14, &x.TokensVoid)
	c.Fixed64(15, (*uint64)(&x.Holder))
}

func (k *Key) Fields(c *wire.Codec) {
	c.Shared(1, &k.Fleet)
	c.Shared(2, &k.Compute)
	c.Shared(3, &k.Process)
}

// Fields of a Process. The game session's record tells which process hosts it and whether it is active.
func (p *Process) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &p.Key, true, (*Key).Fields)
	c.Shared(2, &p.Location)
	wire.Int(c, 3, &p.State)
	c.Bool(4, &p.Linked)
	c.Fixed64(5, &p.Link)
	wire.Int(c, 6, &p.Health)
	c.Bool(7, &p.Settled)
	wire.Int(c, 8, &p.Port)
	c.Shared(9, &p.SDK)
	c.Shared(10, &p.Tool)
	c.Strings(11, &p.LogPaths)
	wire.Int(c, 12, &p.Life)
	wire.Int(c, 13, &p.Connected)
	wire.Int(c, 14, &p.Ready)
	wire.Int(c, 15, &p.EndedAt)
	wire.Int(c, 16, &p.EndReason)
	c.Fixed64(17, &p.Activation)
	c.Fixed64(18, &p.Ending)
	c.Bool(19, &p.HadSession)
	wire.Int(c, 20, &p.ReadyBy)
	wire.Int(c, 21, &p.LostBy)
	wire.Int(c, 22, &p.UnhealthyBy)
	wire.Int(c, 23, &p.TerminateBy)
	wire.Int(c, 24, &p.TerminationTime)
	wire.Int(c, 25, &p.TerminateWhy)
	wire.Int(c, 26, &p.ForgetAt)
	wire.Int(c, 27, &p.LinkAt)
	wire.Int(c, 28, &p.HealthAt)
	wire.Int(c, 29, &p.AskedAt)
	c.String(30, &p.Game)
	wire.Int(c, 31, &p.Token)
	c.Bool(32, &p.Refreshing)
	wire.Int(c, 33, &p.Node)
	wire.Optional(c, 34, &p.Exit, (*exit.Report).Fields)
}

func (e *Event) Fields(c *wire.Codec) {
	c.Shared(1, &e.FleetID)
	c.UUID(2, &e.ID)
	c.Shared(3, &e.Code)
	c.String(4, &e.Message)
	wire.Int(c, 5, &e.At)
	wire.Int(c, 6, &e.No)
	wire.Int(c, 7, &e.Count)
	wire.Int(c, 8, &e.Players)
}

func (x *Creation) Fields(c *wire.Codec) {
	c.Shared(1, &x.FleetID)
	c.Shared(2, &x.Creator)
	wire.Int(c, 3, &x.At)
	wire.Int(c, 4, &x.Until)
}
