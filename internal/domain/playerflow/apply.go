package playerflow

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

// Apply applies an event to the state.
func (c *State) Apply(at domain.Time, event kernel.Event) {
	switch e := event.(type) {
	case *PlayerKeysChanged, *PlayerLoggedIn, *PresenceChanged, *PlayersTold, *EventsTrimmed, *PlayerChanged, *PlayerForgotten:
		c.applyPlayer(at, event)
	case *SearchAdvised, *SearchAdviceDropped:
		c.applyAdvice(event)
	case *GameInstanceTold, *EventsSubscribed, *EventsUnsubscribed, *EventsTaken, *SubscriptionLapsed:
		c.applyFeed(at, event)
	case *FlowResumed:
		c.applyFlowResumed(e)
	case *LoginChanged:
		c.putLogin(e.Login)
	case *LoginRemoved:
		r, _ := c.Flow.Login(e.ID)
		player, ok := c.Flow.Player(c.Flow.Logins.Get(r).Player)
		c.Waiting.Clear(LoginExpiry, r.Any())
		c.Flow.RemoveLogin(r)
		c.Touch()
		if ok {
			c.waitForPlayer(player)
		}
	case *RequestAnswered:
		c.Flow.AddRequest(e.Request, e.Since)
		c.Touch()
	case *PartyChanged:
		p := e.Party
		p.Changed = c.Touch()
		c.waitForParty(c.Flow.PutParty(p))
	case *PartyRemoved:
		r, _ := c.Flow.Party(e.ID)
		c.Waiting.Clear(PartyLeader, r.Any())
		c.Waiting.Clear(PartyStale, r.Any())
		c.Waiting.Clear(PartyReady, r.Any())
		c.Flow.RemoveParty(r)
		c.Touch()
	case *InviteChanged:
		x := e.Invite
		x.Changed = c.Touch()
		c.Waiting.Set(InviteExpiry, c.Flow.PutInvite(x).Any(), x.ExpireBy)
	case *InviteRemoved:
		r, _ := c.Flow.Invite(e.ID)
		c.Waiting.Clear(InviteExpiry, r.Any())
		c.Flow.RemoveInvite(r)
		c.Touch()
	case *GameInstanceChanged:
		x := e.Instance
		x.Changed = c.Touch()
		c.waitForInstance(c.Flow.PutInstance(x))
	case *GameInstanceForgotten:
		r, _ := c.Flow.Instance(e.ID)
		c.Waiting.Clear(InstanceForget, r.Any())
		c.Flow.RemoveInstance(r)
		c.Touch()
	case *MembershipChanged:
		c.applyMembership(e)
	case *MembershipEnded:
		c.applyMembershipEnded(e)
	case *LoginTicketChanged:
		x := e.Ticket
		x.Changed = c.Touch()
		c.Waiting.SetWall(LoginTicketAge, c.Flow.AddLoginTicket(x).Any(), x.Until)
	case *LoginTicketRemoved:
		r, _ := c.Flow.LoginTicket(e.Hash)
		c.Waiting.Clear(LoginTicketAge, r.Any())
		c.Flow.RemoveLoginTicket(r)
		c.Touch()
	case *FlowCommitted:
		for _, id := range e.Players {
			r, _ := c.Flow.Player(id)
			p := c.Flow.Players.Get(r)
			x := flow.Change{
				EndedNo: c.Ended.Next(), Player: p.ID, At: at, Commit: c.Number(), Part: c.Part(), Rev: p.Rev, Keys: p.Keys, Cause: e.Cause, By: e.By,
			}
			c.Touch()
			c.Ended.Push(kernel.Ended{Room: Room, Kind: endedChange, Ref: c.Flow.AddChange(x).Any()})
		}
	case *FlowQueueChanged:
		q := e.Queue
		q.Changed = c.Touch()
		c.waitForQueue(c.Flow.SetQueue(q))
	case *FlowConfigChanged:
		c.Flow.Overrides.Change(e.Document, e.Change)
		c.Flow.Overrides.Changed = c.Touch()
		c.overrideFlowConfig()
	case *PlayersAwaited:
		c.applyPlayersAwaited(e)
	default:
		panic(fmt.Sprintf("no apply for %T", event))
	}
}

func (c *State) applyFlowResumed(e *FlowResumed) {
	c.Touch()
	for r, p := range c.Flow.Players.All() {
		if held := e.Paused || e.Held && c.nodes.Present(p.Node); p.Presence == flow.Online && !held {
			c.awaitPlayer(r, e.PresenceBy)
		}
	}
	for r, x := range c.Flow.Instances.All() {
		host, ok := c.host(x)
		if held := (e.Held || e.Paused) && ok && host.Linked; x.Live() && x.Game != "" && x.Suspect == 0 && !held {
			c.applySuspicion(r, e.Now)
		}
		if x.Status == flow.InstancePending && e.Down > 0 {
			c.hosting.DelayPlacement(x.Placement, domain.Time(e.Down))
		}
	}
	for r, p := range c.Flow.Parties.All() {
		if p.Search != nil && e.Down > 0 {
			c.delaySearch(r, e.Down)
		}
	}
}

// NodeLost gives the players whose streams were at a node time to return, and marks the hosts connected there as suspect. It runs while the
// event that reports the loss is applied. Hosting has already counted the connections as lost.
func (c *State) NodeLost(node uint32, presenceBy, now domain.ContactTime) {
	for r, p := range c.Flow.Players.All() {
		if p.Presence == flow.Online && p.Node == node {
			c.awaitPlayer(r, presenceBy)
		}
	}
	for r, x := range c.Flow.Instances.All() {
		if host, ok := c.host(x); ok && x.Live() && x.Suspect == 0 && host.Node == node && !host.Linked {
			c.applySuspicion(r, now)
		}
	}
}

// host finds the server process of a game instance's game session.
func (c *State) host(x *flow.Instance) (*fleet.Process, bool) {
	game, ok := c.hosting.FindGame(session.ID(x.Game))
	if !ok || c.hosting.Game(game).Process == 0 {
		return nil, false
	}
	return c.hosting.Process(fleet.ProcessRef(c.hosting.Game(game).Process)), true
}

// delaySearch moves the deadlines of a party's search, its ticket, and the match that waits for its answer. These are wall deadlines, because
// tickets that backends start end by wall time.
func (c *State) delaySearch(r flow.PartyRef, by int64) {
	p := c.Flow.Parties.Mut(r)
	s := *p.Search
	s.Expires += domain.Time(by)
	s.AcceptBy = c.matchmaking.DelaySearch(s.Ticket.String(), s.Match.String(), s.AcceptBy, domain.Time(by))
	p.Search, p.Changed = &s, c.Number()
}

// awaitPlayer gives a player whose presence is unknown time to return.
func (c *State) awaitPlayer(r flow.PlayerRef, by domain.ContactTime) {
	x := c.Flow.Players.Mut(r)
	x.Presence, x.Stream, x.PresenceBy, x.PolledBy, x.Changed = flow.Unknown, 0, by, 0, c.Number()
	c.waitForPlayer(r)
}

// applySuspicion stops the holds on the seats of a game whose host may be lost.
func (c *State) applySuspicion(r flow.InstanceRef, now domain.ContactTime) {
	x := c.Flow.Instances.Mut(r)
	x.Suspect, x.Changed = now, c.Number()
	for _, ref := range c.Flow.Instances.Get(r).Members() {
		if m := c.Flow.Memberships.Get(ref); m.HoldBy != 0 {
			m = c.Flow.Memberships.Mut(ref)
			m.HoldLeft, m.HoldBy, m.Changed = max(int64(m.HoldBy-now), 1), 0, c.Number()
			c.Waiting.Set(SeatHold, ref.Any(), 0)
		}
	}
}

func (c *State) applyPlayer(at domain.Time, event kernel.Event) {
	switch e := event.(type) {
	case *PlayerKeysChanged:
		c.mutPlayer(e.Player, func(p *flow.Player) { p.Keys, p.Rev, p.Since = e.Keys, e.Rev, at })
	case *PlayerLoggedIn:
		r, ok := c.Flow.Player(e.Login.Player)
		if !ok {
			r = c.Flow.AddPlayer(flow.Player{ID: e.Login.Player, OfflineSince: at})
		}
		p := c.Flow.Players.Mut(r)
		p.Epoch, p.Changed = e.Login.Epoch, c.Touch()
		p.SetReplaces(flow.Replaces{At: e.ReplacedAt, Logins: e.Replaced, Since: e.ReplacedSince})
		p.FlapUntil = e.FlapUntil
		p.Profile = e.Profile
		if p.Presence == flow.Online { // the client that is online no longer controls the player
			p.Stream, p.PresenceBy = 0, e.PresenceBy
		}
		p.PolledBy = 0
		c.putLogin(e.Login)
	case *PresenceChanged:
		c.mutPlayer(e.Player, func(p *flow.Player) {
			p.Presence, p.Stream, p.PresenceBy, p.OfflineSince = e.Presence, e.Stream, e.PresenceBy, e.OfflineSince
			p.RemoveBy, p.LeaveQueueBy, p.PolledBy, p.Node = e.RemoveBy, e.LeaveQueueBy, e.PolledBy, e.Node
		})
	case *PlayersTold:
		told := flow.Told{At: at, Commit: c.Number(), Part: c.Part(), Type: e.Type, Body: e.Body}
		for _, to := range e.To {
			if to.Seq == 0 {
				continue
			}
			r, _ := c.Flow.Player(to.Player)
			c.Flow.Tell(r, told, to.First).Changed = c.Touch()
			c.waitForPlayer(r)
		}
		if e.No != 0 {
			c.applyStudioEvent(at, e)
		}
	case *EventsTrimmed:
		r, _ := c.Flow.Player(e.Player)
		c.Flow.Trim(r, e.First).Changed = c.Touch()
		c.waitForPlayer(r)
	case *PlayerChanged:
		if _, ok := c.Flow.Player(e.Player); !ok {
			c.Flow.AddPlayer(flow.Player{ID: e.Player, OfflineSince: at})
		}
		c.mutPlayer(e.Player, func(p *flow.Player) {
			p.SetRequeues(flow.Requeues{Left: e.Left, Leaves: e.Leaves, Level: e.RequeueLevel, Since: e.LeavesSince, Until: e.RequeueUntil})
			p.Banned, p.Profile, p.LastGame, p.Penalties, p.Blocked, p.UnlockAt = e.Banned, e.Profile, e.LastGame, e.Penalties, e.Blocked, e.UnlockAt
		})
	case *PlayerForgotten:
		r, _ := c.Flow.Player(e.Player)
		for _, kind := range []kernel.Wait{PlayerPresence, PartyRemoval, QueueRemoval, PlayerAge, PlayerUnlock} {
			c.Waiting.Clear(kind, r.Any())
		}
		c.Flow.RemovePlayer(r)
		c.Touch()
	}
}

func (c *State) mutPlayer(id string, f func(*flow.Player)) {
	r, _ := c.Flow.Player(id)
	p := c.Flow.Players.Mut(r)
	f(p)
	p.Changed = c.Touch()
	c.waitForPlayer(r)
}

func (c *State) putLogin(l flow.Login) {
	l.Changed = c.Touch()
	r := c.Flow.PutLogin(l)
	c.Waiting.Set(LoginExpiry, r.Any(), LoginActsAt(&l))
	player, _ := c.Flow.Player(l.Player)
	c.waitForPlayer(player)
}

// waitForPlayer sets the deadlines of a player from the record.
func (c *State) waitForPlayer(r flow.PlayerRef) {
	p := c.Flow.Players.Get(r)
	c.Waiting.Set(PlayerPresence, r.Any(), p.PresenceBy)
	c.Waiting.Set(PartyRemoval, r.Any(), p.RemoveBy)
	c.Waiting.Set(QueueRemoval, r.Any(), p.LeaveQueueBy)
	c.Waiting.SetWall(PlayerAge, r.Any(), c.PlayerAgesAt(p))
	c.Waiting.SetWall(PlayerUnlock, r.Any(), p.UnlockAt)
}

// How long records are kept for players who return and ask.
const (
	outboxKept   = 15 * time.Minute
	playerKept   = 30 * 24 * time.Hour
	lastGameKept = 24 * time.Hour
	replacedKept = time.Hour        // a replaced login session, so that its client learns why it ended
	expiredKept  = 10 * time.Minute // an expired invite, so that the invited player learns why it is not valid
	RequestsKept = 10 * time.Minute
)

// PlayerAgesAt returns when the next record of an absent player may be removed; 0 if there is none.
func (c *State) PlayerAgesAt(p *flow.Player) domain.Time {
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
		known := max(p.OfflineSince.Add(playerKept), p.Requeues().Until)
		for _, x := range p.Penalties {
			known = max(known, x.Until)
		}
		consider(known)
	}
	return next
}

func (c *State) waitForParty(r flow.PartyRef) {
	p := c.Flow.Parties.Get(r)
	c.Waiting.Set(PartyLeader, r.Any(), p.LeaderBy)
	c.Waiting.Set(PartyStale, r.Any(), p.StaleBy)
	c.Waiting.Set(PartyReady, r.Any(), p.ReadyBy())
}

// waitForQueue sets the deadlines of a queue: one to end its searches after it was closed, one to tell players the expected wait.
func (c *State) waitForQueue(r flow.QueueRef) {
	at := domain.Time(0)
	if q := c.Flow.Queues.Get(r); q.Closed && !q.Drained {
		at = kernel.AtOnce
	}
	c.Waiting.SetWall(QueueDrain, r.Any(), at)
	c.Waiting.SetWall(QueueEstimate, r.Any(), c.Flow.Queues.Get(r).TellAt)
}

func (c *State) waitForInstance(r flow.InstanceRef) {
	x := c.Flow.Instances.Get(r)
	c.Waiting.Set(InstanceAllocation, r.Any(), x.AllocateBy)
	c.Waiting.Set(InstanceAbsolute, r.Any(), x.AbsoluteBy)
	c.Waiting.Set(InstanceEnding, r.Any(), x.EndBy)
	c.Waiting.Set(InstanceEmpty, r.Any(), x.EmptyBy)
	c.Waiting.Set(InstanceKeepAlive, r.Any(), x.KeepAliveBy)
	c.Waiting.SetWall(InstanceForget, r.Any(), x.ForgetAt)
}

func (c *State) applyMembership(e *MembershipChanged) {
	is := e.Membership
	is.Changed = c.Touch()
	r := c.Flow.PutMembership(is)
	m := c.Flow.Memberships.Get(r)
	c.Waiting.Set(SeatHold, r.Any(), m.HoldBy)
	c.Flow.Players.Mut(m.PlayerRef()).Changed = c.Number()
	switch m = c.Flow.Memberships.Get(r); {
	case m.Keep && m.Seat == 0:
		player, _ := c.hosting.FindPlayer(m.Session)
		seat := c.hosting.KeepSeat(player)
		c.Flow.Memberships.Mut(r).Seat = seat.Any()
	case !m.Keep && m.Seat != 0:
		c.hosting.ReleaseSeat(session.SeatRef(m.Seat))
		c.Flow.Memberships.Mut(r).Seat = 0
	}
}

func (c *State) applyMembershipEnded(e *MembershipEnded) {
	player, _ := c.Flow.Player(e.Player)
	r := c.Flow.Players.Get(player).Membership()
	if seat := session.SeatRef(c.Flow.Memberships.Get(r).Seat); seat != 0 {
		c.hosting.ReleaseSeat(seat)
	}
	c.Waiting.Clear(SeatHold, r.Any())
	c.Flow.RemoveMembership(r)
	p := c.Flow.Players.Mut(player)
	p.LastGame, p.Changed = e.LastGame, c.Touch()
	c.waitForPlayer(player)
}

// KeptSeat returns the seat of a player's membership, whether it is held or a player session is on it; 0 for none.
func (c *State) KeptSeat(player string) session.SeatRef {
	r, ok := c.Flow.Player(player)
	if !ok || c.Flow.Players.Get(r).Membership() == 0 {
		return 0
	}
	m := c.Flow.Memberships.Get(c.Flow.Players.Get(r).Membership())
	if m.Seat != 0 {
		return session.SeatRef(m.Seat)
	}
	if p, ok := c.hosting.FindPlayer(m.Session); ok {
		return c.hosting.PlayerSession(p).Seat
	}
	return 0
}
