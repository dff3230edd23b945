package cell

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

func (c *Cell) applyFlow(at domain.Time, event Event) {
	switch e := event.(type) {
	case *PlayerKeysChanged, *PlayerLoggedIn, *PresenceChanged, *PlayersTold, *EventsTrimmed, *PlayerChanged, *PlayerForgotten:
		c.applyPlayer(at, event)
	case *FlowResumed:
		c.applyFlowResumed(e)
	case *LoginChanged:
		c.putLogin(e.Login)
	case *LoginRemoved:
		r, _ := c.flow.Login(e.ID)
		player, ok := c.flow.Player(c.flow.Logins.Get(r).Player)
		c.waiting.clear(loginExpiry, r)
		c.flow.RemoveLogin(r)
		c.touch()
		if ok {
			c.waitForPlayer(player)
		}
	case *RequestAnswered:
		c.flow.AddRequest(e.Request, e.Since)
		c.touch()
	case *PartyChanged:
		p := e.Party
		p.Changed = c.touch()
		c.waitForParty(c.flow.PutParty(p))
	case *PartyRemoved:
		r, _ := c.flow.Party(e.ID)
		c.waiting.clear(partyLeader, r)
		c.waiting.clear(partyStale, r)
		c.waiting.clear(partyReady, r)
		c.flow.RemoveParty(r)
		c.touch()
	case *InviteChanged:
		x := e.Invite
		x.Changed = c.touch()
		c.waiting.set(inviteExpiry, c.flow.PutInvite(x), x.ExpireBy)
	case *InviteRemoved:
		r, _ := c.flow.Invite(e.ID)
		c.waiting.clear(inviteExpiry, r)
		c.flow.RemoveInvite(r)
		c.touch()
	case *GameInstanceChanged:
		x := e.Instance
		x.Changed = c.touch()
		c.waitForInstance(c.flow.PutInstance(x))
	case *GameInstanceForgotten:
		r, _ := c.flow.Instance(e.ID)
		c.waiting.clear(instanceForget, r)
		c.flow.RemoveInstance(r)
		c.touch()
	case *MembershipChanged:
		c.applyMembership(e)
	case *MembershipEnded:
		c.applyMembershipEnded(e)
	case *LoginTicketChanged:
		x := e.Ticket
		x.Changed = c.touch()
		c.waiting.setWall(loginTicketAge, c.flow.AddLoginTicket(x), x.Until)
	case *LoginTicketRemoved:
		r, _ := c.flow.LoginTicket(e.Hash)
		c.waiting.clear(loginTicketAge, r)
		c.flow.RemoveLoginTicket(r)
		c.touch()
	case *FlowCommitted:
		for _, id := range e.Players {
			r, _ := c.flow.Player(id)
			p := c.flow.Players.Get(r)
			x := flow.Change{
				EndedNo: c.ended.next(), Player: p.ID, At: at, Commit: c.number, Part: c.part, Rev: p.Rev, Keys: p.Keys, Cause: e.Cause, By: e.By, Changed: c.touch(),
			}
			c.ended.push(endedChange, c.flow.AddChange(x))
		}
	case *FlowQueueChanged:
		q := e.Queue
		q.Changed = c.touch()
		c.waitForQueue(c.flow.SetQueue(q))
	case *FlowConfigChanged:
		c.flow.Overrides.Change(e.Document, e.Change)
		c.flow.Overrides.Changed = c.touch()
		c.overrideFlowConfig()
	case *PlayersAwaited:
		c.applyPlayersAwaited(e)
	default:
		panic(fmt.Sprintf("no apply for %T", event))
	}
}

func (c *Cell) applyFlowResumed(e *FlowResumed) {
	c.touch()
	for r, p := range c.flow.Players.All() {
		if p.Presence == flow.Online {
			c.awaitPlayer(r, e.PresenceBy)
		}
	}
	for r, x := range c.flow.Instances.All() {
		if x.Live() && x.Game != "" && x.Suspect == 0 {
			c.applySuspicion(r, e.Now)
		}
		if x.Status == flow.InstancePending && e.Down > 0 {
			c.delayPlacement(x.Placement, e.Down)
		}
	}
	for r, p := range c.flow.Parties.All() {
		if p.Search != nil && e.Down > 0 {
			c.delaySearch(r, e.Down)
		}
	}
}

// delaySearch moves the ends of a party's search, of its ticket, and of the match that waits for its answer. They are on the
// calendar, as those of tickets that backends start themselves are, which end on time.
func (c *Cell) delaySearch(r flow.Ref, by int64) {
	p := c.flow.Parties.Mut(r)
	s := *p.Search
	s.Expires += domain.Time(by)
	m := c.matchmaking
	if at, ok := m.Ticket("mm-" + s.Ticket.String()); ok {
		t := m.Tickets.Mut(at)
		t.TimeoutAt, t.Changed = t.TimeoutAt+domain.Time(by), c.number
		if t.Status.Waits() {
			c.waiting.setWall(ticketTimeout, at, t.TimeoutAt)
		}
	}
	if at, ok := m.Match(s.Match.String()); ok && s.AcceptBy != 0 {
		x := m.Matches.Mut(at)
		if s.AcceptBy == x.AcceptBy { // the first of its parties
			x.AcceptBy, x.Changed = x.AcceptBy+domain.Time(by), c.number
			c.waiting.setWall(acceptanceTimeout, at, x.AcceptBy)
		}
		s.AcceptBy = x.AcceptBy
	}
	p.Search, p.Changed = &s, c.number
}

// delayPlacement moves the end of a placement that players wait for.
func (c *Cell) delayPlacement(id string, by int64) {
	r, ok := c.placements.Placement(id)
	if !ok || c.placements.Placements.Get(r).Status != placement.Pending {
		return
	}
	c.changePlacement(id, func(p *placement.Placement) { p.TimeoutAt += domain.Time(by) })
	c.waiting.setWall(placementTimeout, r, c.placements.Placements.Get(r).TimeoutAt)
}

// awaitPlayer gives a player time to come back whose client is not known to be here any more.
func (c *Cell) awaitPlayer(r flow.Ref, by domain.ContactTime) {
	x := c.flow.Players.Mut(r)
	x.Presence, x.Stream, x.PresenceBy, x.PolledBy, x.Changed = flow.Unknown, 0, by, 0, c.number
	c.waitForPlayer(r)
}

// applySuspicion stops the clocks of those whose seats are kept while nobody knows whether the host is still there.
func (c *Cell) applySuspicion(r flow.Ref, now domain.ContactTime) {
	x := c.flow.Instances.Mut(r)
	x.Suspect, x.Changed = now, c.number
	for _, ref := range c.flow.Instances.Get(r).Members() {
		if m := c.flow.Memberships.Get(ref); m.HoldBy != 0 {
			m = c.flow.Memberships.Mut(ref)
			m.HoldLeft, m.HoldBy, m.Changed = max(int64(m.HoldBy-now), 1), 0, c.number
			c.waiting.set(seatHold, ref, 0)
		}
	}
}

func (c *Cell) applyPlayer(at domain.Time, event Event) {
	switch e := event.(type) {
	case *PlayerKeysChanged:
		c.changePlayer(e.Player, func(p *flow.Player) { p.Keys, p.Rev, p.Since = e.Keys, e.Rev, at })
	case *PlayerLoggedIn:
		r, ok := c.flow.Player(e.Login.Player)
		if !ok {
			r = c.flow.AddPlayer(flow.Player{ID: e.Login.Player, OfflineSince: at})
		}
		p := c.flow.Players.Mut(r)
		p.Epoch, p.Changed = e.Login.Epoch, c.touch()
		p.Replaced, p.ReplacedSince, p.FlapUntil = e.Replaced, e.ReplacedSince, e.FlapUntil
		p.Profile = e.Profile
		if p.Presence == flow.Online { // the client that is here is not the one that counts any more
			p.Stream, p.PresenceBy = 0, e.PresenceBy
		}
		p.PolledBy = 0
		c.putLogin(e.Login)
	case *PresenceChanged:
		c.changePlayer(e.Player, func(p *flow.Player) {
			p.Presence, p.Stream, p.PresenceBy, p.OfflineSince = e.Presence, e.Stream, e.PresenceBy, e.OfflineSince
			p.RemoveBy, p.LeaveQueueBy, p.PolledBy = e.RemoveBy, e.LeaveQueueBy, e.PolledBy
		})
	case *PlayersTold:
		told := flow.Told{At: at, Commit: c.number, Part: c.part, Type: e.Type, Body: e.Body}
		for _, to := range e.To {
			if to.Seq == 0 {
				continue
			}
			r, _ := c.flow.Player(to.Player)
			c.flow.Tell(r, told, to.First).Changed = c.touch()
			c.waitForPlayer(r)
		}
		if e.No != 0 {
			c.applyStudioEvent(at, e)
		}
	case *EventsTrimmed:
		r, _ := c.flow.Player(e.Player)
		c.flow.Trim(r, e.First).Changed = c.touch()
		c.waitForPlayer(r)
	case *PlayerChanged:
		if _, ok := c.flow.Player(e.Player); !ok {
			c.flow.AddPlayer(flow.Player{ID: e.Player, OfflineSince: at})
		}
		c.changePlayer(e.Player, func(p *flow.Player) {
			p.Banned, p.Leaves, p.LeavesSince = e.Banned, e.Leaves, e.LeavesSince
			p.RequeueLevel, p.RequeueUntil = e.RequeueLevel, e.RequeueUntil
			p.Profile, p.LastGame, p.Penalties, p.Blocked, p.UnlockAt = e.Profile, e.LastGame, e.Penalties, e.Blocked, e.UnlockAt
		})
	case *PlayerForgotten:
		r, _ := c.flow.Player(e.Player)
		for _, kind := range []waits{playerPresence, partyRemoval, queueRemoval, playerAge, playerUnlock} {
			c.waiting.clear(kind, r)
		}
		c.flow.RemovePlayer(r)
		c.touch()
	}
}

func (c *Cell) changePlayer(id string, f func(*flow.Player)) {
	r, _ := c.flow.Player(id)
	p := c.flow.Players.Mut(r)
	f(p)
	p.Changed = c.touch()
	c.waitForPlayer(r)
}

func (c *Cell) putLogin(l flow.Login) {
	l.Changed = c.touch()
	r := c.flow.PutLogin(l)
	c.waiting.set(loginExpiry, r, loginActsAt(&l))
	player, _ := c.flow.Player(l.Player)
	c.waitForPlayer(player)
}

// waitForPlayer sets the deadlines of a player from the record.
func (c *Cell) waitForPlayer(r flow.Ref) {
	p := c.flow.Players.Get(r)
	c.waiting.set(playerPresence, r, p.PresenceBy)
	c.waiting.set(partyRemoval, r, p.RemoveBy)
	c.waiting.set(queueRemoval, r, p.LeaveQueueBy)
	c.waiting.setWall(playerAge, r, c.playerAgesAt(p))
	c.waiting.setWall(playerUnlock, r, p.UnlockAt)
}

// How long is remembered what a player who is away may ask for.
const (
	outboxKept   = 15 * time.Minute
	playerKept   = 30 * 24 * time.Hour
	lastGameKept = 24 * time.Hour
	replacedKept = time.Hour        // a replaced login session, to tell its client why
	expiredKept  = 10 * time.Minute // an expired invite, to tell its guest why
	requestsKept = 10 * time.Minute
)

// playerAgesAt is when something about a player who is away can be forgotten; 0 when nothing can.
func (c *Cell) playerAgesAt(p *flow.Player) domain.Time {
	if p.Here() {
		return 0
	}
	var next domain.Time
	consider := func(at domain.Time) {
		if next == 0 || at < next {
			next = at
		}
	}
	if len(p.Outbox()) > 0 {
		consider(p.Outbox()[len(p.Outbox())-1].At.Add(outboxKept))
	}
	if p.LastGame != nil {
		consider(p.LastGame.Ended.Add(lastGameKept))
	}
	if p.Keys == (flow.Keys{}) && p.Login() == 0 && !p.Banned && len(p.Blocked) == 0 && (p.Profile == nil || p.Profile.Trusted == "") {
		consider(p.OfflineSince.Add(playerKept))
	}
	return next
}

func (c *Cell) waitForParty(r flow.Ref) {
	p := c.flow.Parties.Get(r)
	c.waiting.set(partyLeader, r, p.LeaderBy)
	c.waiting.set(partyStale, r, p.StaleBy)
	c.waiting.set(partyReady, r, p.ReadyBy())
}

// waitForQueue lets the searches of a closed queue end at once, and those of others be told what is expected.
func (c *Cell) waitForQueue(r flow.Ref) {
	at := domain.Time(0)
	if q := c.flow.Queues.Get(r); q.Closed && !q.Drained {
		at = sweepAt
	}
	c.waiting.setWall(queueDrain, r, at)
	c.waiting.setWall(queueEstimate, r, c.flow.Queues.Get(r).TellAt)
}

func (c *Cell) waitForInstance(r flow.Ref) {
	x := c.flow.Instances.Get(r)
	c.waiting.set(instanceAllocation, r, x.AllocateBy)
	c.waiting.set(instanceAbsolute, r, x.AbsoluteBy)
	c.waiting.set(instanceEnding, r, x.EndBy)
	c.waiting.set(instanceEmpty, r, x.EmptyBy)
	c.waiting.set(instanceKeepAlive, r, x.KeepAliveBy)
	c.waiting.setWall(instanceForget, r, x.ForgetAt)
}

func (c *Cell) applyMembership(e *MembershipChanged) {
	is := e.Membership
	is.Changed = c.touch()
	r := c.flow.PutMembership(is)
	m := c.flow.Memberships.Get(r)
	c.waiting.set(seatHold, r, m.HoldBy)
	c.flow.Players.Mut(m.PlayerRef()).Changed = c.number
	switch m = c.flow.Memberships.Get(r); {
	case m.Keep && m.Seat == 0:
		player, _ := c.sessions.PlayerByID(m.Session)
		seat := c.sessions.Keep(player)
		c.flow.Memberships.Mut(r).Seat = seat
	case !m.Keep && m.Seat != 0:
		c.sessions.Release(m.Seat)
		c.flow.Memberships.Mut(r).Seat = 0
	}
}

func (c *Cell) applyMembershipEnded(e *MembershipEnded) {
	player, _ := c.flow.Player(e.Player)
	r := c.flow.Players.Get(player).Membership()
	if seat := c.flow.Memberships.Get(r).Seat; seat != 0 {
		game := c.sessions.Seats.Get(seat).Game
		c.sessions.Release(seat)
		c.sessions.Games.Mut(game).Changed = c.touch()
	}
	c.waiting.clear(seatHold, r)
	c.flow.RemoveMembership(r)
	p := c.flow.Players.Mut(player)
	p.LastGame, p.Changed = e.LastGame, c.touch()
	c.waitForPlayer(player)
}

// seatOf is the seat that a player has by a membership: kept, or with a player session on it; 0 for none.
func (c *Cell) seatOf(player string) session.Ref {
	r, ok := c.flow.Player(player)
	if !ok || c.flow.Players.Get(r).Membership() == 0 {
		return 0
	}
	m := c.flow.Memberships.Get(c.flow.Players.Get(r).Membership())
	if m.Seat != 0 {
		return m.Seat
	}
	if p, ok := c.sessions.PlayerByID(m.Session); ok {
		return c.sessions.Players.Get(p).Seat
	}
	return 0
}
