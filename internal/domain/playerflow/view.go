package playerflow

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/session"
)

// FlowSnapshot is the complete state that a player's client needs, at one moment.
type FlowSnapshot struct {
	Player    string
	Record    flow.Record
	Now       domain.Time // time of the cell's last change; use the engine's clock for the current time
	Presence  flow.Presence
	Stream    uint64     // number of the attached stream; 0: none
	Node      uint32     // number of the cluster node that has the stream or was polled last; 0: a single node
	Login     flow.Login // ID zero: not logged in
	ExpiresAt domain.Time
	Profile   flow.Profile
	Party     *flow.PartyView
	Search    *flow.Search
	Game      *GameView
	Invites   []flow.InviteView // those that can be answered, oldest first
	Locks     []flow.Penalty
	LastGame  *flow.LastGame
	Allowed   flow.Actions
	Foreign   []ForeignSession // live player sessions without a membership
	FirstKept uint64           // number of the oldest event that can be replayed
	Banned    bool
}

// GameView is a game instance as one of its players sees it.
type GameView struct {
	flow.Instance
	MembersCount int
	HeldSeats    int32 // seats of its game session that are held for absent players
	Membership   flow.Membership
	HoldUntil    domain.Time // reconnect_deadline; 0: none
	ReserveUntil domain.Time // of an open reservation
	CanDecline   bool
	CanLeave     bool
	Host         *flow.Host
}

// FlowEnabled reports whether player flow is on.
func (v *View) FlowEnabled() bool { return v.c.Limits.Flow != nil }

// LoginByToken finds the login session of an access token. State LoginReplaced means that a later login has taken over.
// stale reports that a newer token replaced this one too long ago.
func (v *View) LoginByToken(token domain.UUID, now domain.Time) (l flow.Login, stale, ok bool) {
	r, ok := v.c.Flow.LoginByToken(token)
	if !ok {
		v.SawAll()
		return flow.Login{}, false, false
	}
	l = *v.c.Flow.Logins.Get(r)
	v.Saw(l.Changed)
	return l, l.Token != token && l.PreviousBy <= now, true
}

// Login finds a login session.
func (v *View) Login(id flow.LoginSessionID) (l flow.Login, ok bool) {
	r, ok := v.c.Flow.Login(id)
	if ok {
		l = *v.c.Flow.Logins.Get(r)
	}
	return l, v.Found(ok, l.Changed)
}

// LoggedIn reports whether a player has a live login session.
func (v *View) LoggedIn(player string) bool {
	v.SawAll()
	r, ok := v.c.Flow.Player(player)
	return ok && v.c.Flow.Players.Get(r).Login() != 0
}

// LoginExpires returns when a login session ends without a further sign of life.
func (v *View) LoginExpires(l *flow.Login) domain.Time { return v.c.WallTime(l.ExpireBy) }

// Record returns the flow record of a player, which every answer to the player carries.
func (v *View) Record(player string) (flow.Record, bool) {
	r, ok := v.c.Flow.Player(player)
	if !ok {
		v.SawAll()
		return flow.Record{}, false
	}
	p := v.c.Flow.Players.Get(r)
	v.Saw(p.Changed)
	return flow.Record{Rev: p.Rev, Seq: p.Seq, Keys: p.Keys}, true
}

// FlowOf returns everything about a player.
func (v *View) FlowOf(player string, now domain.Time) (FlowSnapshot, bool) {
	v.SawAll() // the answer depends on absent records, too
	r, ok := v.c.Flow.Player(player)
	if !ok {
		return FlowSnapshot{}, false
	}
	c := v.c
	p := c.Flow.Players.Get(r)
	s := FlowSnapshot{
		Player: p.ID, Record: flow.Record{Rev: p.Rev, Seq: p.Seq, Keys: p.Keys}, Now: c.Last(), Presence: p.Presence, Stream: p.Stream, Node: p.Node, Profile: profileOf(p),
		LastGame: p.LastGame, Locks: c.Locks(p, now), Allowed: c.AllowedActions(r), FirstKept: p.FirstKept(), Banned: p.Banned,
	}
	if p.Login() != 0 {
		s.Login = *c.Flow.Logins.Get(p.Login())
		s.ExpiresAt = c.WallTime(s.Login.ExpireBy)
	}
	if party, ok := c.Flow.Party(p.Keys.Party); ok {
		view := c.PartyView(party)
		s.Party, s.Search = &view, view.Search
	}
	if p.Membership() != 0 {
		s.Game = c.gameView(p.Membership())
	}
	for _, x := range c.Flow.InvitesTo(p.ID) {
		if invite := c.Flow.Invites.Get(x); !invite.Expired {
			s.Invites = append(s.Invites, *c.inviteView(invite))
		}
	}
	c.hosting.PlayersNamed(p.ID, func(_ session.PlayerRef, x *session.PlayerSession) bool {
		if x.Status.Live() && (s.Game == nil || x.ID != s.Game.Membership.Session && x.ID != s.Game.Membership.Next) {
			v.Saw(x.Changed)
			g := c.hosting.Game(x.Game)
			s.Foreign = append(s.Foreign, ForeignSession{x.ID, g.ID, g.Region, x.Status})
		}
		return true
	})
	return s, true
}

// StreamOf returns the number of a player's attached stream; 0: none.
func (v *View) StreamOf(player string) uint64 {
	r, ok := v.c.Flow.Player(player)
	if !ok {
		v.SawAll()
		return 0
	}
	p := v.c.Flow.Players.Get(r)
	v.Saw(p.Changed)
	return p.Stream
}

// ForeignSession is a player session that a backend made outside player flow.
type ForeignSession struct {
	ID     domain.PlayerSessionID
	GameID session.ID
	Region string
	Status session.PlayerStatus
}

// gameView returns a game instance as one of its players sees it.
func (c *State) gameView(r flow.MembershipRef) *GameView {
	m := *c.Flow.Memberships.Get(r)
	x := *c.Flow.Instances.Get(m.InstanceRef())
	view := &GameView{
		Instance: x, MembersCount: len(x.Members()), Membership: m, HoldUntil: c.holdUntil(&m), CanDecline: c.mayDecline(&m),
		CanLeave: x.Rules.Reconnect != flow.ReconnectRequired,
	}
	if g, ok := c.hosting.FindGame(session.ID(x.Game)); ok {
		view.HeldSeats = c.hosting.Game(g).SeatsEmpty
	}
	if m.Status != flow.MemberPending {
		view.Host = c.openHostOf(&m)
		if view.Host != nil {
			view.ReserveUntil = view.Host.ReserveBy
		}
	}
	return view
}

// PartyView returns a party as its members see it.
func (c *State) PartyView(r flow.PartyRef) flow.PartyView {
	p := *c.Flow.Parties.Get(r)
	view := flow.PartyView{Party: p, People: make([]flow.MemberView, len(p.Members))}
	var held []string
	for i, m := range p.Members {
		ref, _ := c.Flow.Player(m.Player)
		x := c.Flow.Players.Get(ref)
		profile := profileOf(x)
		view.People[i] = flow.MemberView{
			DisplayName: profile.DisplayName, Online: x.Here(), OfflineSince: x.OfflineSince, ClientVersion: profile.ClientVersion,
			Phase: x.Keys.Phase(), Attributes: profile.Attributes, Latencies: profile.Latencies,
		}
		if x.Presence != flow.Online {
			held = append(held, m.Player)
		}
	}
	if s := p.Search; s != nil && s.Status <= flow.Held && len(held) > 0 { // after a restart no player was told of it
		now := *s
		now.Status, now.HeldBy = flow.Held, held
		view.Search = &now
	}
	return view
}

func (c *State) inviteView(x *flow.Invite) *flow.InviteView {
	return &flow.InviteView{Invite: *x, Expires: c.WallTime(x.ExpireBy)}
}

// Party returns a party as its members see it.
func (v *View) Party(id flow.PartyID) (flow.PartyView, bool) {
	v.SawAll()
	r, ok := v.c.Flow.Party(id)
	if !ok {
		return flow.PartyView{}, false
	}
	return v.c.PartyView(r), true
}

// PlayerEvent is one event of a player's stream, in order.
type PlayerEvent struct {
	Seq uint64
	flow.Told
}

// EventsAfter returns the events of a player with numbers above `after`, and the number of the latest one. ok is false if
// some of them are no longer kept or `after` is above the latest number: the client then needs FlowOf.
func (v *View) EventsAfter(player string, after uint64, limit int) (events []PlayerEvent, head uint64, ok bool) {
	r, known := v.c.Flow.Player(player)
	if !known {
		v.SawAll()
		return nil, 0, false
	}
	p := v.c.Flow.Players.Get(r)
	v.Saw(p.Changed)
	if after > p.Seq || after+1 < p.FirstKept() {
		return nil, p.Seq, false
	}
	for i, x := range p.Outbox()[after+1-p.FirstKept():] {
		if len(events) == limit {
			break
		}
		events = append(events, PlayerEvent{after + 1 + uint64(i), x})
	}
	return events, p.Seq, true
}

// GameInstance returns a game instance and its members.
func (v *View) GameInstance(id flow.InstanceID) (x flow.Instance, members []flow.Membership, ok bool) {
	v.SawAll()
	r, ok := v.c.Flow.Instance(id)
	if !ok {
		return flow.Instance{}, nil, false
	}
	x = *v.c.Flow.Instances.Get(r)
	for _, m := range x.Members() {
		members = append(members, *v.c.Flow.Memberships.Get(m))
	}
	return x, members, true
}

// GameInstanceOf returns the id of the live game instance that a game session hosts.
func (v *View) GameInstanceOf(game session.ID) (flow.InstanceID, bool) {
	v.SawAll()
	r, ok := v.c.Flow.InstanceOfGame(string(game))
	if !ok {
		return flow.InstanceID{}, false
	}
	return v.c.Flow.Instances.Get(r).ID, true
}

// VerifyPlayer checks the claims of a connection token against the state, for a game server whose client presents it.
func (v *View) VerifyPlayer(instance flow.InstanceID, playerSession domain.PlayerSessionID, epoch uint32, attempt int32) (flow.Membership, error) {
	v.SawAll()
	refuse := func(code flow.Code, why string) (flow.Membership, error) {
		return flow.Membership{}, flow.Refuse(flow.Refusal{Code: code}, "player session %s: %s", playerSession, why)
	}
	r, ok := v.c.hosting.FindPlayer(playerSession)
	if !ok {
		return refuse(flow.InvalidToken, "not found")
	}
	p := v.c.hosting.PlayerSession(r)
	x, known := v.c.Flow.Instance(instance)
	if !known || v.c.Flow.Instances.Get(x).Game != string(v.c.hosting.Game(p.Game).ID) {
		return refuse(flow.WrongGame, "it is for another game session")
	}
	player, ok := v.c.Flow.Player(p.Player)
	if !ok || v.c.Flow.Players.Get(player).Membership() == 0 {
		return refuse(flow.InvalidToken, "its player is in no game")
	}
	m := *v.c.Flow.Memberships.Get(v.c.Flow.Players.Get(player).Membership())
	current := m.Session
	if !m.Next.IsZero() {
		current = m.Next
	}
	switch {
	case m.Instance != instance:
		return refuse(flow.WrongGame, "its player is in another game")
	case current != playerSession || m.Epoch != epoch || m.Attempt != attempt:
		return refuse(flow.Superseded, "the player has asked for details again")
	case !p.Status.Live():
		return refuse(flow.InvalidToken, "it is "+p.Status.String())
	}
	return m, nil
}

// QueueClosed reports whether operators have closed a queue to players.
func (v *View) QueueClosed(queue string) bool {
	v.SawAll()
	return v.c.Flow.Closed(queue)
}

// QueueView is a queue that players may enter.
type QueueView struct {
	Name               string
	Open               bool
	PartyMax           int
	AcceptanceRequired bool
	Reconnect          flow.Reconnect
	EstimatedSeconds   int32 // 0: unknown
}

// FlowQueues lists the queues that players may enter, ordered by name.
func (v *View) FlowQueues(now domain.Time) (all []QueueView) {
	v.SawAll()
	c := v.c
	c.matchmaking.EachConfiguration(func(x *matchmaking.Configuration) bool {
		settings, ok := c.Config.Queue(x.Name)
		if !ok || !c.takesParties(x) {
			return true
		}
		q := QueueView{
			Name: x.Name, Open: !c.Flow.Closed(x.Name), PartyMax: c.partyMax(x, &settings), AcceptanceRequired: x.AcceptanceRequired,
			Reconnect: c.Config.RulesOf(x.Name).Reconnect,
		}
		q.EstimatedSeconds, _ = c.matchmaking.EstimatedWait(x.Name, now)
		all = append(all, q)
		return true
	})
	return all
}
