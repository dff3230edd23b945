package playerflow

import (
	"fmt"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Freeze returns the room's part of a snapshot.
func (c *State) Freeze(*kernel.Head) []kernel.Frozen {
	f, overrides := c.Flow, c.Flow.Overrides
	return []kernel.Frozen{
		kernel.Freeze(partFlowPlayer, f.Players),
		kernel.Freeze(partLogin, f.Logins),
		kernel.Freeze(partParty, f.Parties),
		kernel.Freeze(partInvite, f.Invites),
		kernel.Freeze(partInstance, f.Instances),
		kernel.Freeze(partMembership, f.Memberships),
		kernel.Freeze(partRequest, f.Requests),
		kernel.Freeze(partLoginTicket, f.Tickets),
		kernel.Freeze(partFlowQueue, f.Queues),
		func(w *kernel.PartWriter) {
			if len(overrides.Changes) > 0 {
				w.Part(partFlowOverrides, &overrides)
			}
		},
		freezeFeeds(f.Instances.Freeze(), f.Studio),
		kernel.Freeze(partFlowChange, f.Changes),
		kernel.Freeze(partSearchAdvice, f.Advices),
	}
}

// Field numbers of message SnapshotPart in proto/journal.proto.
const (
	partFlowPlayer    = 30
	partLogin         = 31
	partParty         = 32
	partInvite        = 33
	partInstance      = 34
	partMembership    = 35
	partRequest       = 36
	partLoginTicket   = 37
	partFlowQueue     = 38
	partFlowOverrides = 39
	partFlowFeed      = 41
	partFlowChange    = 43
	partSearchAdvice  = 44
)

// Bulk adds records of which each player may have one or more.
func (c *State) Bulk(kind uint64, n int) kernel.Decode {
	f := c.Flow
	switch kind {
	case partFlowPlayer:
		return kernel.Place(f.Players, n, (*flow.Player).Loaded)
	case partLogin:
		return kernel.Place(f.Logins, n, nil)
	case partParty:
		return kernel.Place(f.Parties, n, nil)
	case partMembership:
		return kernel.Place(f.Memberships, n, nil)
	case partFlowChange:
		return kernel.Place(f.Changes, n, nil)
	}
	return nil
}

// Load reads a part of a snapshot.
func (c *State) Load(l *kernel.Loader, kind uint64, body []byte) (known bool, err error) {
	f := c.Flow
	switch kind {
	case partInvite:
		return true, kernel.LoadWith(l, body, func(x flow.Invite) { f.PutInvite(x) })
	case partInstance:
		return true, kernel.LoadWith(l, body, func(x flow.Instance) { f.PutInstance(x) })
	case partRequest:
		return true, kernel.LoadWith(l, body, func(x flow.Request) { f.RestoreRequest(x) })
	case partLoginTicket:
		return true, kernel.LoadWith(l, body, func(x flow.LoginTicket) { f.AddLoginTicket(x) })
	case partFlowOverrides:
		return true, l.Reader.Read(body, &f.Overrides)
	case partSearchAdvice:
		return true, kernel.LoadWith(l, body, func(a flow.Advice) { f.AddAdvice(a) })
	case partFlowFeed:
		return true, c.loadFeed(l, body)
	case partFlowQueue:
		return true, kernel.LoadWith(l, body, func(q flow.Queue) { c.waitForQueue(f.SetQueue(q)) })
	}
	return false, nil
}

// Restore rebuilds the data that snapshots omit: indexes, deadlines, and which seats are held or shared.
func (c *State) Restore(*kernel.Head) error {
	c.overrideFlowConfig()
	for _, tasks := range [][]func() error{c.Flow.Found(), c.Flow.Connected(), append(c.Flow.Indexed(), c.restoreWaits)} {
		if err := c.Together(tasks...); err != nil {
			return fmt.Errorf("snapshot: %w: %w", err, wire.ErrMalformed)
		}
	}
	return nil
}

// restoreWaits restores deadlines and held and shared seats.
func (c *State) restoreWaits() error {
	f := c.Flow
	c.Waiting.Expect(f.Players.Len())
	for r := range f.Players.All() {
		c.waitForPlayer(r)
	}
	c.Waiting.Expect(f.Logins.Len())
	for r, l := range f.Logins.All() {
		c.Waiting.Set(LoginExpiry, r.Any(), LoginActsAt(l))
	}
	c.Waiting.Expect(f.Parties.Len())
	for r := range f.Parties.All() {
		c.waitForParty(r)
	}
	c.Waiting.Expect(0)
	for r, x := range f.Invites.All() {
		c.Waiting.Set(InviteExpiry, r.Any(), x.ExpireBy)
	}
	for r := range f.Instances.All() {
		c.waitForInstance(r)
	}
	for r, x := range f.Tickets.All() {
		c.Waiting.SetWall(LoginTicketAge, r.Any(), x.Until)
	}
	for r, m := range f.Memberships.All() {
		c.Waiting.Set(SeatHold, r.Any(), m.HoldBy)
		if err := c.restoreSeat(r); err != nil {
			return err
		}
	}
	c.waitForReceivers()
	return nil
}

// restoreSeat puts the live player sessions of a membership on one seat, and holds the seat if the membership says so.
func (c *State) restoreSeat(r flow.MembershipRef) error {
	m := c.Flow.Memberships.Get(r)
	live := func(id domain.PlayerSessionID) session.PlayerRef {
		if p, ok := c.hosting.FindPlayer(id); ok && c.hosting.PlayerSession(p).Status.Live() {
			return p
		}
		return 0
	}
	current, next := live(m.Session), live(m.Next)
	if current != 0 && next != 0 {
		c.hosting.ShareSeat(next, current)
	}
	if !m.Keep {
		return nil
	}
	var seat session.SeatRef
	switch {
	case current != 0:
		seat = c.hosting.KeepSeat(current)
	case next != 0:
		seat = c.hosting.KeepSeat(next)
	default:
		game, ok := c.hosting.FindGame(session.ID(c.Flow.Instances.Get(m.InstanceRef()).Game))
		if !ok {
			return fmt.Errorf("a seat is kept for player %q in a game session that there is not", m.Player)
		}
		seat = c.hosting.KeepEmptySeat(game)
	}
	c.Flow.Memberships.Mut(r).Seat = seat.Any()
	return nil
}
