package flow

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Fields of Keys.
func (k *Keys) Fields(c *wire.Codec) {
	wire.ID(c, 1, &k.Party)
	wire.ID(c, 2, &k.Ticket)
	wire.ID(c, 3, &k.Game)
}

func (s *Record) Fields(c *wire.Codec) {
	wire.Int(c, 1, &s.Rev)
	wire.Int(c, 2, &s.Seq)
	wire.Sub(c, 3, &s.Keys, s.Keys != Keys{}, (*Keys).Fields)
}

func (p *Player) Fields(c *wire.Codec) {
	c.String(1, &p.ID)
	wire.Sub(c, 2, &p.Keys, p.Keys != Keys{}, (*Keys).Fields)
	wire.Int(c, 3, &p.Rev)
	wire.Int(c, 4, &p.Seq)
	wire.Int(c, 5, &p.Epoch)
	wire.Int(c, 6, &p.Presence)
	c.Fixed64(7, &p.Stream)
	wire.Int(c, 8, &p.PresenceBy)
	wire.Int(c, 9, &p.OfflineSince)
	wire.Int(c, 10, &p.RemoveBy)
	wire.Int(c, 11, &p.LeaveQueueBy)
	c.Bool(12, &p.Banned)
	replaces := p.Replaces()
	wire.Int(c, 13, &replaces.Logins)
	wire.Int(c, 14, &replaces.Since)
	wire.Int(c, 15, &p.FlapUntil)
	requeues := p.Requeues()
	wire.Int(c, 16, &requeues.Leaves)
	wire.Int(c, 17, &requeues.Since)
	wire.Int(c, 18, &requeues.Level)
	wire.Int(c, 19, &requeues.Until)
	wire.Optional(c, 20, &p.Profile, (*Profile).Fields)
	wire.Optional(c, 21, &p.LastGame, (*LastGame).Fields)
	wire.Many(c, 22, &p.Penalties, (*Penalty).Fields)
	c.Strings(23, &p.Blocked)
	wire.Many(c, 24, &p.outbox, (*Told).Fields)
	wire.Int(c, 31, &p.Since)
	wire.Int(c, 32, &p.PolledBy)
	wire.Int(c, 33, &p.UnlockAt)
	wire.Int(c, 34, &p.Node)
	wire.Many(c, 35, &requeues.Left, func(at *domain.Time, c *wire.Codec) { wire.Int(c, 1, at) })
	wire.Many(c, 36, &replaces.At, func(at *domain.Time, c *wire.Codec) { wire.Int(c, 1, at) })
	if p.replaces == nil && !replaces.none() { // it was read: writing changes nothing
		p.SetReplaces(replaces)
	}
	if p.requeues == nil && !requeues.none() { // it was read: writing changes nothing
		p.SetRequeues(requeues)
	}
}

func (x *Told) Fields(c *wire.Codec) {
	wire.Int(c, 1, &x.At)
	wire.Int(c, 2, &x.Commit)
	wire.Int(c, 3, &x.Type)
	if x.Type == OnGameSessionChanged { // it contains the player's own record, which other players must not see
		c.String(4, &x.Body)
	} else {
		c.SharedFrom(4, &x.Body, 32)
	}
	wire.Int(c, 5, &x.Part)
}

func (p *Profile) Fields(c *wire.Codec) {
	c.String(1, &p.DisplayName)
	c.Shared(2, &p.ClientVersion)
	wire.Many(c, 3, &p.Latencies, (*Latency).Fields)
	c.String(4, &p.Attributes)
	c.String(5, &p.Trusted)
}

func (l *Latency) Fields(c *wire.Codec) {
	c.Shared(1, &l.Region)
	wire.Int(c, 2, &l.Milliseconds)
}

func (l *LastGame) Fields(c *wire.Codec) {
	wire.ID(c, 1, &l.Instance)
	wire.Int(c, 2, &l.EndReason)
	wire.Int(c, 3, &l.Membership)
	wire.Int(c, 4, &l.Ended)
	c.String(5, &l.Result)
}

func (p *Penalty) Fields(c *wire.Codec) {
	wire.Int(c, 1, &p.Kind)
	wire.Int(c, 2, &p.Level)
	wire.Int(c, 3, &p.Since)
	wire.Int(c, 4, &p.Until)
	wire.ID(c, 5, &p.Instance)
	wire.Int(c, 6, &p.Reason)
}

func (l *Login) Fields(c *wire.Codec) {
	wire.ID(c, 1, &l.ID)
	c.String(2, &l.Player)
	wire.Int(c, 3, &l.Epoch)
	wire.Int(c, 4, &l.State)
	c.UUID(5, &l.Token)
	c.UUID(6, &l.Previous)
	wire.Int(c, 7, &l.PreviousBy)
	c.Shared(8, &l.Device)
	c.Shared(9, &l.ClientVersion)
	c.Bool(10, &l.AutoReconnect)
	c.Bool(11, &l.Insecure)
	wire.Int(c, 12, &l.Created)
	wire.Int(c, 13, &l.ExpireBy)
	c.Bool(14, &l.Warned)
}

func (p *Party) Fields(c *wire.Codec) {
	wire.ID(c, 1, &p.ID)
	wire.Int(c, 2, &p.Rev)
	wire.Int(c, 3, &p.Created)
	wire.Int(c, 4, &p.MembersMax)
	wire.Int(c, 5, &p.Joinability)
	c.String(6, &p.Code)
	c.Shared(7, &p.Queue)
	c.Strings(8, &p.Regions)
	c.String(9, &p.Attributes)
	wire.Many(c, 10, &p.Members, (*Member).Fields)
	wire.Many(c, 11, &p.Kicked, (*Kicked).Fields)
	wire.Optional(c, 12, &p.Search, (*Search).Fields)
	wire.Int(c, 13, &p.LeaderBy)
	wire.Int(c, 14, &p.StaleBy)
}

func (m *Member) Fields(c *wire.Codec) {
	c.String(1, &m.Player)
	wire.Int(c, 2, &m.Joined)
	c.Bool(3, &m.Ready)
	c.Bool(4, &m.Leader)
	wire.Int(c, 5, &m.ReadyBy)
}

func (k *Kicked) Fields(c *wire.Codec) {
	c.String(1, &k.Player)
	wire.Int(c, 2, &k.At)
}

func (s *Search) Fields(c *wire.Codec) {
	wire.ID(c, 1, &s.Ticket)
	c.Shared(2, &s.Queue)
	wire.Int(c, 3, &s.Entered)
	wire.Int(c, 4, &s.Expires)
	wire.Int(c, 5, &s.Status)
	c.Strings(6, &s.HeldBy)
	c.UUID(7, &s.Match)
	wire.Int(c, 8, &s.AcceptBy)
	c.Strings(9, &s.Accepted)
	c.Strings(10, &s.Pending)
	wire.Int(c, 11, &s.EstimateMS)
}

func (x *Invite) Fields(c *wire.Codec) {
	wire.ID(c, 1, &x.ID)
	wire.ID(c, 2, &x.Party)
	c.String(3, &x.From)
	c.String(4, &x.To)
	wire.Int(c, 5, &x.Created)
	wire.Int(c, 6, &x.ExpireBy)
	c.Bool(7, &x.Expired)
	c.Bool(8, &x.Unseen)
}

func (x *LoginTicket) Fields(c *wire.Codec) {
	c.UUID(1, &x.Hash)
	c.String(2, &x.Player)
	c.String(3, &x.DisplayName)
	c.Bool(4, &x.Once)
	wire.Int(c, 5, &x.Until)
	c.Bool(6, &x.Used)
}

func (x *Request) Fields(c *wire.Codec) {
	c.Fixed64(1, &x.Key)
	wire.Int(c, 2, &x.At)
	c.Shared(3, &x.Player)
	wire.Sub(c, 4, &x.Flow, x.Flow != Record{}, (*Record).Fields)
	c.UUID(5, &x.Made)
	c.UUID(6, &x.Proof)
}

func (q *Queue) Fields(c *wire.Codec) {
	c.String(1, &q.Name)
	c.Bool(2, &q.Closed)
	c.Bool(3, &q.Drained)
	wire.Int(c, 4, &q.EstimateMS)
	wire.Int(c, 5, &q.ToldAt)
	wire.Int(c, 6, &q.TellAt)
	wire.ID(c, 7, &q.TellAfter)
}

// Fields of Rules.
func (r *Rules) Fields(c *wire.Codec) {
	wire.Int(c, 1, &r.Reconnect)
	c.Duration(2, &r.ReconnectWindow, time.Millisecond)
	c.Duration(3, &r.NoShowHold, time.Millisecond)
	c.Duration(4, &r.Reservation, time.Millisecond)
	c.Bool(5, &r.NoHold)
	wire.Int(c, 6, &r.DisconnectsMax)
	c.Duration(7, &r.AllocationTimeout, time.Millisecond)
	c.Bool(8, &r.ManualReady)
	wire.Int(c, 9, &r.Completed)
	c.Duration(10, &r.KeepAlive, time.Millisecond)
	wire.Int(c, 11, &r.KeepAliveMisses)
	c.Duration(12, &r.AbsoluteTimeout, time.Millisecond)
	c.Duration(13, &r.EndingGrace, time.Millisecond)
	c.Duration(14, &r.EmptyTimeout, time.Millisecond)
	c.Bool(15, &r.DenyTakeover)
	c.Bool(16, &r.Requeue)
	c.Bool(17, &r.WrapData)
}

func (x *Instance) Fields(c *wire.Codec) {
	wire.ID(c, 1, &x.ID)
	wire.Int(c, 2, &x.Status)
	wire.Int(c, 3, &x.EndReason)
	wire.Int(c, 4, &x.Created)
	wire.Int(c, 5, &x.Ended)
	wire.Sub(c, 6, &x.Rules, x.Rules != Rules{}, (*Rules).Fields)
	c.Shared(7, &x.Queue)
	c.String(8, &x.Match)
	c.String(9, &x.Placement)
	c.String(10, &x.Game)
	c.String(11, &x.Attributes)
	c.Bool(12, &x.Ready)
	c.Bool(13, &x.Unranked)
	wire.Int(c, 14, &x.AllocateBy)
	wire.Int(c, 15, &x.AbsoluteBy)
	wire.Int(c, 16, &x.EndBy)
	wire.Int(c, 17, &x.EmptyBy)
	wire.Int(c, 18, &x.KeepAliveBy)
	wire.Int(c, 19, &x.Suspect)
	c.Bool(20, &x.MissedOne)
	wire.Int(c, 21, &x.ForgetAt)
	c.String(22, &x.Result)
	wire.Many(c, 23, &x.Gone, (*Leaver).Fields)
	wire.Many(c, 24, &x.Lost, (*Loss).Fields)
}

func (l *Leaver) Fields(c *wire.Codec) {
	c.String(1, &l.Player)
	wire.Int(c, 2, &l.Reason)
}

func (l *Loss) Fields(c *wire.Codec) {
	c.String(1, &l.Player)
	wire.Int(c, 2, &l.At)
}

func (m *Membership) Fields(c *wire.Codec) {
	wire.ID(c, 1, &m.Instance)
	c.String(2, &m.Player)
	wire.Int(c, 3, &m.Status)
	c.Shared(4, &m.Team)
	wire.ID(c, 5, &m.Party)
	wire.Int(c, 6, &m.Joined)
	wire.Int(c, 7, &m.Attempt)
	wire.Int(c, 8, &m.Disconnects)
	c.Bool(9, &m.WasActive)
	wire.Int(c, 10, &m.LostAt)
	wire.ID(c, 11, &m.Session)
	wire.ID(c, 12, &m.Next)
	wire.Int(c, 13, &m.Epoch)
	wire.Int(c, 14, &m.HoldBy)
	c.Bool(15, &m.Keep)
	c.String(16, &m.Data)
	c.String(17, &m.Attributes)
	c.Bool(18, &m.Excused)
	wire.Int(c, 19, &m.HoldLeft)
	wire.ID(c, 20, &m.Ticket)
	wire.Int(c, 21, &m.Entered)
	wire.Int(c, 22, &m.TokenUntil)
	c.Bool(23, &m.Overdue)
	c.Bool(24, &m.Unasked)
}
