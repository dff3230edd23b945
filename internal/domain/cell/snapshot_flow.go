package cell

import (
	"fmt"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/domain/wire"
)

// flowSnapshot is what a snapshot holds of player flow.
type flowSnapshot struct {
	players     chunk.Frozen[flow.Player]
	logins      chunk.Frozen[flow.Login]
	parties     chunk.Frozen[flow.Party]
	invites     chunk.Frozen[flow.Invite]
	instances   chunk.Frozen[flow.Instance]
	memberships chunk.Frozen[flow.Membership]
	requests    chunk.Frozen[flow.Request]
	tickets     chunk.Frozen[flow.LoginTicket]
	queues      chunk.Frozen[flow.Queue]
	overrides   flow.Overrides
	studio      flow.Studio
	changes     chunk.Frozen[flow.Change]
	advices     chunk.Frozen[flow.Advice]
}

func (c *Cell) freezeFlow() flowSnapshot {
	f := c.flow
	return flowSnapshot{
		f.Players.Freeze(), f.Logins.Freeze(), f.Parties.Freeze(), f.Invites.Freeze(), f.Instances.Freeze(), f.Memberships.Freeze(),
		f.Requests.Freeze(), f.Tickets.Freeze(), f.Queues.Freeze(), f.Overrides, f.Studio, f.Changes.Freeze(), f.Advices.Freeze(),
	}
}

// write writes the parts, each kind behind those that it names.
func (s *flowSnapshot) write(w *partWriter) {
	writeAll(w, partFlowPlayer, s.players)
	writeAll(w, partLogin, s.logins)
	writeAll(w, partParty, s.parties)
	writeAll(w, partInvite, s.invites)
	writeAll(w, partInstance, s.instances)
	writeAll(w, partMembership, s.memberships)
	writeAll(w, partRequest, s.requests)
	writeAll(w, partLoginTicket, s.tickets)
	writeAll(w, partFlowQueue, s.queues)
	if len(s.overrides.Changes) > 0 {
		w.part(partFlowOverrides, &s.overrides)
	}
	s.writeFeeds(w)
	writeAll(w, partFlowChange, s.changes)
	writeAll(w, partSearchAdvice, s.advices)
}

func (l *loader) flowPart(kind uint64, body []byte) error {
	f := l.c.flow
	switch kind {
	case partFlowPlayer:
		return loadWith(l, body, func(p flow.Player) { f.AddPlayer(p) })
	case partLogin:
		var x flow.Login
		if err := l.reader.Read(body, &x); err != nil {
			return err
		}
		if _, ok := f.Player(x.Player); !ok && x.State == flow.LoginLive {
			return fmt.Errorf("snapshot: login session fs-%s of an unknown player: %w", x.ID, wire.ErrMalformed)
		}
		f.PutLogin(x)
	case partParty:
		return loadWith(l, body, func(p flow.Party) { f.PutParty(p) })
	case partInvite:
		return loadWith(l, body, func(x flow.Invite) { f.PutInvite(x) })
	case partInstance:
		return loadWith(l, body, func(x flow.Instance) { f.PutInstance(x) })
	case partMembership:
		var m flow.Membership
		if err := l.reader.Read(body, &m); err != nil {
			return err
		}
		_, known := f.Player(m.Player)
		if _, ok := f.Instance(m.Instance); !ok || !known {
			return fmt.Errorf("snapshot: membership of player %q in gi-%s without one of them: %w", m.Player, m.Instance, wire.ErrMalformed)
		}
		f.PutMembership(m)
	case partRequest:
		return loadWith(l, body, func(x flow.Request) { f.RestoreRequest(x) })
	case partLoginTicket:
		return loadWith(l, body, func(x flow.LoginTicket) { f.AddLoginTicket(x) })
	case partFlowOverrides:
		return l.reader.Read(body, &f.Overrides)
	case partSearchAdvice:
		return loadWith(l, body, func(a flow.Advice) { f.AddAdvice(a) })
	case partFlowChange:
		return load(l, body, &f.Changes)
	case partFlowFeed:
		return l.feedPart(body)
	case partFlowQueue:
		return loadWith(l, body, func(q flow.Queue) { l.c.waitForQueue(f.SetQueue(q)) })
	}
	return nil
}

// restoreFlow rebuilds what the snapshot does not hold: deadlines, and which seats are kept or shared.
func (c *Cell) restoreFlow() error {
	f := c.flow
	f.Restored()
	c.overrideFlowConfig()
	for r := range f.Players.All() {
		c.waitForPlayer(r)
	}
	for r, l := range f.Logins.All() {
		c.waiting.set(loginExpiry, r, loginActsAt(l))
	}
	for r := range f.Parties.All() {
		c.waitForParty(r)
	}
	for r, x := range f.Invites.All() {
		c.waiting.set(inviteExpiry, r, x.ExpireBy)
	}
	for r := range f.Instances.All() {
		c.waitForInstance(r)
	}
	for r, x := range f.Tickets.All() {
		c.waiting.setWall(loginTicketAge, r, x.Until)
	}
	for r, m := range f.Memberships.All() {
		c.waiting.set(seatHold, r, m.HoldBy)
		if err := c.restoreSeat(r); err != nil {
			return err
		}
	}
	c.waitForReceivers()
	return nil
}

// restoreSeat brings the live player sessions of a membership onto one seat, and keeps it if it is kept.
func (c *Cell) restoreSeat(r flow.Ref) error {
	m := c.flow.Memberships.Get(r)
	live := func(id domain.UUID) session.Ref {
		if p, ok := c.sessions.PlayerByID(id); ok && c.sessions.Players.Get(p).Status.Live() {
			return p
		}
		return 0
	}
	current, next := live(m.Session), live(m.Next)
	if current != 0 && next != 0 {
		c.sessions.Share(next, current)
	}
	if !m.Keep {
		return nil
	}
	var seat session.Ref
	switch {
	case current != 0:
		seat = c.sessions.Keep(current)
	case next != 0:
		seat = c.sessions.Keep(next)
	default:
		game, ok := c.sessions.Game(session.ID(c.flow.Instances.Get(m.InstanceRef()).Game))
		if !ok {
			return fmt.Errorf("snapshot: a seat is kept for player %q in a game session that there is not: %w", m.Player, wire.ErrMalformed)
		}
		seat = c.sessions.KeepEmpty(game)
	}
	c.flow.Memberships.Mut(r).Seat = seat
	return nil
}
