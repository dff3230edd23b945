package cell

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// GamePlan is a game instance that the studio, or a player, wants.
type GamePlan struct {
	ID         domain.UUID // of the game instance to be; a repeat with the same one changes nothing
	Players    []PlannedPlayer
	Queue      string // a game session queue
	PlayersMax int32
	Reconnect  flow.Reconnect // 0: the service's
	Name       string
	Data       string
	Properties []session.Property
	Latencies  []placement.Latency
	Attributes string   // a JSON object; empty for none
	Regions    []string // locations, the best first; empty: as the queue has it
}

// PlannedPlayer gets a seat.
type PlannedPlayer struct {
	Player string
	Team   string
	Data   string // PlayerData of the player session
}

// checkPlan checks a plan against the state; what it returns carries it out and cannot fail.
func (t *tx) checkPlan(plan *GamePlan) (begin func(), err error) {
	if len(plan.Players) == 0 {
		return nil, flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "players: empty")
	}
	var members []newMember
	for _, x := range plan.Players {
		r, err := t.playerNamed(x.Player)
		if err == nil {
			err = t.mayPlayDirectly(r)
		}
		if err == nil && slices.ContainsFunc(members, func(m newMember) bool { return m.player == r }) {
			err = flow.Refuse(flow.Refusal{Code: flow.InvalidArgument, Players: []string{x.Player}}, "players: %s is named twice", x.Player)
		}
		if err != nil {
			return nil, err
		}
		members = append(members, newMember{player: r, team: x.Team, data: x.Data})
	}
	rules := t.c.flowConfig.Games.Rules
	if plan.Reconnect != 0 {
		rules.Reconnect = plan.Reconnect
	}
	start := &StartPlacement{Placement: placement.Placement{
		ID: "gi-" + plan.ID.String(), Queue: plan.Queue, PlayersMax: plan.PlayersMax, Name: plan.Name, Data: plan.Data,
		Properties: flowProperties(plan.Properties, plan.ID, rules.Reconnect, ""), Latencies: plan.Latencies, Regions: plan.Regions,
	}, archivedID: archivedID{ArchivedAt: t.c.forgotten}}
	if !rules.ManualReady {
		for _, x := range plan.Players {
			start.Placement.Players = append(start.Placement.Players, placement.Player{Player: x.Player, Data: x.Data, ID: t.newID()})
		}
	}
	if int32(len(plan.Players)) > plan.PlayersMax {
		return nil, flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "players: %d, but the maximum is %d", len(plan.Players), plan.PlayersMax)
	}
	if err := start.check(t); err != nil {
		return nil, err
	}
	return func() {
		t.beginInstance(flow.Instance{ID: plan.ID, Rules: rules, Placement: start.Placement.ID, Attributes: plan.Attributes}, members)
		start.begin(t)
	}, nil
}

// InstanceProperty is the property of a game session that names its game instance.
const InstanceProperty = "pf.instance"

// flowProperties are the properties that every game session of player flow has, beside others.
func flowProperties(own []session.Property, id domain.UUID, mode flow.Reconnect, queue string) []session.Property {
	own = slices.DeleteFunc(slices.Clone(own), func(p session.Property) bool { return strings.HasPrefix(p.Key, "pf.") })
	own = append(own, keyvalue.Pair{Key: InstanceProperty, Value: "gi-" + id.String()}, keyvalue.Pair{Key: "pf.reconnect", Value: mode.String()})
	if queue != "" {
		own = append(own, keyvalue.Pair{Key: "pf.queue", Value: queue})
	}
	return own
}

// MakeGame is a match that the studio's backend has made: all players are checked and moved in one transaction, or none.
type MakeGame struct {
	Plan GamePlan

	// Result
	Instance flow.Instance
	Repeated bool
}

func (cmd *MakeGame) decide(t *tx) error {
	if err := t.flowOn(); err != nil {
		return err
	}
	if r, ok := t.c.flow.Instance(cmd.Plan.ID); ok {
		cmd.Instance, cmd.Repeated = *t.c.flow.Instances.Get(r), true
		return nil
	}
	begin, err := t.checkPlan(&cmd.Plan)
	if err != nil {
		return err
	}
	t.flow.cause = "Flow.CreateGameInstance"
	begin()
	r, _ := t.c.flow.Instance(cmd.Plan.ID)
	cmd.Instance = *t.c.flow.Instances.Get(r)
	return nil
}

// ReadyGame says that a server takes players (Game.Ready). It matters only with manualReady.
type ReadyGame struct{ Instance domain.UUID }

func (cmd *ReadyGame) decide(t *tx) error {
	r, err := t.servedInstance(cmd.Instance, "Game.Ready")
	if err != nil {
		return err
	}
	switch x := t.c.flow.Instances.Get(r); {
	case x.Ready:
		return nil
	case x.Status == flow.InstanceEnding:
		return flow.Refuse(flow.Refusal{Code: flow.GameIsEnding}, "game instance gi-%s is about to end", x.ID)
	}
	t.changeInstance(r, func(x *flow.Instance) { x.Ready, x.AllocateBy = true, 0 })
	t.admitMembers(r)
	return nil
}

// servedInstance finds a game instance that has a host.
func (t *tx) servedInstance(id domain.UUID, cause string) (flow.Ref, error) {
	if err := t.flowOn(); err != nil {
		return 0, err
	}
	t.flow.cause = cause
	r, err := t.liveInstance(id)
	if err == nil && t.c.flow.Instances.Get(r).Status == flow.InstancePending {
		err = flow.Refuse(flow.Refusal{Code: flow.HostNotReady}, "game instance gi-%s has no host yet", id)
	}
	return r, err
}

// ConnectMember says that a player has connected to the game server (Game.PlayerConnected): the same as AcceptPlayer, for
// a server that is known by its game session.
type ConnectMember struct {
	Instance      domain.UUID
	PlayerSession domain.UUID
}

func (cmd *ConnectMember) decide(t *tx) error {
	r, err := t.servedInstance(cmd.Instance, "Game.PlayerConnected")
	if err != nil {
		return err
	}
	p, err := t.sessionOf(r, cmd.PlayerSession)
	switch {
	case err != nil:
		return err
	case p.Status == session.PlayerActive:
		return nil
	case p.Status != session.Reserved:
		return domain.Refuse(domain.WrongPlayerState, "player session psess-%s is %s, not RESERVED", p.ID, p.Status)
	}
	t.accept(p, 0)
	return nil
}

// sessionOf finds a player session in the game session of a game instance.
func (t *tx) sessionOf(r flow.Ref, id domain.UUID) (*session.PlayerSession, error) {
	p, ok := t.c.sessions.PlayerByID(id)
	if !ok || string(t.c.sessions.Games.Get(t.c.sessions.Players.Get(p).Game).ID) != t.c.flow.Instances.Get(r).Game {
		return nil, flow.Refuse(flow.Refusal{Code: flow.InvalidToken}, "player session psess-%s is not one of this game", id)
	}
	return t.c.sessions.Players.Get(p), nil
}

// accept marks a player session as connected, with what follows from it.
func (t *tx) accept(p *session.PlayerSession, request uint64) {
	player, id := p.Player, p.ID
	t.emit(&PlayerAccepted{id, request})
	t.playerAccepted(player, id)
}

// DisconnectMember says that a player's game connection is gone (Game.PlayerDisconnected), and whether the player wanted
// it so.
type DisconnectMember struct {
	Instance      domain.UUID
	PlayerSession domain.UUID
	Quit          bool

	// Result: Stale when the player session is not the current one of the player: nothing was done about the player.
	Stale bool
}

func (cmd *DisconnectMember) decide(t *tx) error {
	r, err := t.servedInstance(cmd.Instance, "Game.PlayerDisconnected")
	if err != nil {
		return err
	}
	p, err := t.sessionOf(r, cmd.PlayerSession)
	if err != nil {
		return err
	}
	player, id, live, game := p.Player, p.ID, p.Status.Live(), p.Game
	last := t.lastReservation(player, id)
	m, next, ok := t.memberOf(player, id)
	cmd.Stale = !ok || next || !live
	if live {
		t.emit(&PlayerEnded{id, session.Completed})
	}
	switch {
	case cmd.Stale && next && live:
		t.changeMembership(m, func(m *flow.Membership) { m.Next = domain.UUID{} })
	case cmd.Stale:
	case cmd.Quit:
		t.endMembership(m, flow.Left)
	case t.c.flow.Memberships.Get(m).Status == flow.MemberReserved:
		t.reservationOver(m, last)
	default:
		t.connectionLost(m)
	}
	t.playerLeft(game)
	return nil
}

// RemoveMembers takes players out of a game that goes on (Game.RemovePlayers).
type RemoveMembers struct {
	Instance domain.UUID
	Players  []RemovedMember

	// Result: those who were not in the game.
	Unknown []string
}

// RemovedMember says why.
type RemovedMember struct {
	Player   string
	Reason   flow.Reason // RemovedAFK, RemovedKicked, RemovedEliminated or Removed
	Penalise bool
	Result   string
}

func (cmd *RemoveMembers) decide(t *tx) error {
	r, err := t.servedInstance(cmd.Instance, "Game.RemovePlayers")
	if err != nil {
		return err
	}
	for _, x := range cmd.Players {
		m, ok := t.memberIn(r, x.Player)
		if !ok {
			if !t.wentOut(cmd.Instance, x.Player, flow.Removed) {
				cmd.Unknown = append(cmd.Unknown, x.Player)
			}
			continue
		}
		current := t.c.flow.Memberships.Get(m).Session
		player, unasked := t.c.flow.Memberships.Get(m).PlayerRef(), t.c.flow.Memberships.Get(m).Unasked
		t.endMembershipWith(m, flow.Removed, x.Result)
		t.completeSession(current)
		if x.Penalise && x.Reason == flow.RemovedAFK && !unasked {
			t.penalise(player, flow.AFK, cmd.Instance, x.Reason)
		}
	}
	return nil
}

func (t *tx) memberIn(r flow.Ref, player string) (flow.Ref, bool) {
	p, ok := t.c.flow.Player(player)
	if !ok || t.c.flow.Players.Get(p).Membership() == 0 {
		return 0, false
	}
	m := t.c.flow.Players.Get(p).Membership()
	return m, t.c.flow.Memberships.Get(m).InstanceRef() == r
}

// wentOut reports whether a player's last game was this one, and ended for the player by the same call: it is a repeat.
func (t *tx) wentOut(instance domain.UUID, player string, why flow.Reason) bool {
	p, ok := t.c.flow.Player(player)
	if !ok {
		return false
	}
	last := t.c.flow.Players.Get(p).LastGame
	return last != nil && last.Instance == instance && last.Membership == why
}

// completeSession ends a player session that is still live.
func (t *tx) completeSession(id domain.UUID) {
	if p, ok := t.c.sessions.PlayerByID(id); ok && t.c.sessions.Players.Get(p).Status.Live() {
		t.emit(&PlayerEnded{id, session.Completed})
	}
}

// ReleaseMembers lets players go, never with a penalty (Game.ReleasePlayers): the exit from REQUIRED.
type ReleaseMembers struct {
	Instance domain.UUID
	Players  []string
	Result   string

	// Result: those who were not in the game.
	Unknown []string
}

func (cmd *ReleaseMembers) decide(t *tx) error {
	r, err := t.servedInstance(cmd.Instance, "Game.ReleasePlayers")
	if err != nil {
		return err
	}
	for _, player := range cmd.Players {
		if m, ok := t.memberIn(r, player); ok {
			t.endMembershipWith(m, flow.Released, cmd.Result)
		} else if !t.wentOut(cmd.Instance, player, flow.Released) {
			cmd.Unknown = append(cmd.Unknown, player)
		}
	}
	return nil
}

// AddMembers seats players who are idle or in a party (Game.AddPlayers). Who cannot be seated is listed.
type AddMembers struct {
	Instance domain.UUID
	Players  []PlannedPlayer

	// ByGame says that the game server asks, not the studio's backend. It may seat only players who were in this very game
	// before, because they asked for it or the backend named them, and nothing that follows is an offence of theirs.
	ByGame bool

	// Result
	Failed []FailedPlayer
}

// FailedPlayer was not seated.
type FailedPlayer struct {
	Player string
	Why    flow.Code
}

func (cmd *AddMembers) decide(t *tx) error {
	r, err := t.servedInstance(cmd.Instance, "Game.AddPlayers")
	if err != nil {
		return err
	}
	for _, x := range cmd.Players {
		p, err := t.playerNamed(x.Player)
		if err == nil {
			if _, ok := t.memberIn(r, x.Player); ok {
				continue // a repeat
			}
			err = t.mayPlayDirectly(p)
		}
		if err == nil && cmd.ByGame && !t.wasIn(cmd.Instance, p) {
			err = flow.Refuse(flow.Refusal{Code: flow.JoinNotAllowed}, "player %s was never in game instance gi-%s; the studio's backend may add the player", x.Player, cmd.Instance)
		}
		if err == nil {
			err = t.hasRoom(r, 1)
		}
		if err != nil {
			cmd.Failed = append(cmd.Failed, FailedPlayer{x.Player, flow.CodeOf(err)})
			continue
		}
		t.seatNewcomer(r, newMember{player: p, team: x.Team, data: x.Data, unasked: cmd.ByGame})
	}
	return nil
}

// wasIn reports whether the last game of a player was this one.
func (t *tx) wasIn(instance domain.UUID, r flow.Ref) bool {
	last := t.c.flow.Players.Get(r).LastGame
	return last != nil && last.Instance == instance
}

// UpdateGame changes what a game server says about the game and its players (Game.Update).
type UpdateGame struct {
	Instance         domain.UUID
	Attributes       *string
	PlayerAttributes map[string]string
	Unranked         *bool // leaving it is no offence from now on
}

func (cmd *UpdateGame) decide(t *tx) error {
	r, err := t.servedInstance(cmd.Instance, "Game.Update")
	if err != nil {
		return err
	}
	t.changeInstance(r, func(x *flow.Instance) {
		set(&x.Attributes, cmd.Attributes)
		set(&x.Unranked, cmd.Unranked)
	})
	var players []string
	for _, m := range slices.Clone(t.c.flow.Instances.Get(r).Members()) {
		player := t.c.flow.Memberships.Get(m).Player
		if own, ok := cmd.PlayerAttributes[player]; ok {
			t.changeMembership(m, func(m *flow.Membership) { m.Attributes = own })
		}
		players = append(players, player)
	}
	t.tellPlayers(flow.OnGameInstanceUpdated, flow.Message{Instance: cmd.Instance, Attributes: t.c.flow.Instances.Get(r).Attributes}, players...)
	return nil
}

// KeepGameAlive is the sign of life of a game server that promised them (Game.KeepAlive).
type KeepGameAlive struct{ Instance domain.UUID }

func (cmd *KeepGameAlive) decide(t *tx) error {
	r, err := t.servedInstance(cmd.Instance, "Game.KeepAlive")
	if err != nil {
		return err
	}
	x := t.c.flow.Instances.Get(r)
	if x.Rules.KeepAlive == 0 {
		return nil
	}
	missed, game := x.MissedOne, x.Game
	t.changeInstance(r, func(x *flow.Instance) { x.MissedOne, x.KeepAliveBy = false, t.contact.Add(x.Rules.KeepAlive) })
	if g, ok := t.c.sessions.Game(session.ID(game)); ok && missed && t.c.sessions.Games.Get(g).Process != 0 {
		t.reviewHost(t.c.fleets.Processes.Get(t.c.sessions.Games.Get(g).Process).Key)
	}
	return nil
}

// EndGame says that the game is over, with its results (Game.EndGame). A second one changes nothing.
type EndGame struct {
	Instance domain.UUID
	Result   string            // a JSON object; empty for none
	Results  map[string]string // of single players
}

func (cmd *EndGame) decide(t *tx) error {
	if err := t.flowOn(); err != nil {
		return err
	}
	r, ok := t.c.flow.Instance(cmd.Instance)
	if !ok {
		return flow.Refuse(flow.Refusal{Code: flow.GameInstanceNotFound}, "game instance gi-%s not found", cmd.Instance)
	}
	t.flow.cause = "Game.EndGame"
	if x := t.c.flow.Instances.Get(r); x.Live() {
		t.stopBackfill(x.Game)
	}
	t.endInstance(r, flow.Finished, flow.GameEnded, cmd.Result, cmd.Results)
	return nil
}

// SetPlayerAttributes is what the studio's backend says about a player; it overrides what the client says.
type SetPlayerAttributes struct {
	Player     string
	Attributes string // a JSON object; empty for none
}

func (cmd *SetPlayerAttributes) decide(t *tx) error {
	if err := t.flowOn(); err != nil {
		return err
	}
	if err := checkPlayerID("player_id", cmd.Player); err != nil {
		return err
	}
	e := &PlayerChanged{Player: cmd.Player, Profile: &flow.Profile{Trusted: cmd.Attributes}}
	r, ok := t.c.flow.Player(cmd.Player)
	if !ok {
		if err := t.roomForPlayer(); err != nil {
			return err
		}
		t.emit(e)
		return nil
	}
	profile := profileOf(t.c.flow.Players.Get(r))
	profile.Trusted = cmd.Attributes
	t.changePlayer(r, func(e *PlayerChanged) { e.Profile = &profile })
	return nil
}

// SetBlocks says with whom a player wants neither invites nor a common party.
type SetBlocks struct {
	Player  string
	Blocked []string
}

// blockedMax bounds a player's list.
const blockedMax = 1000

func (cmd *SetBlocks) decide(t *tx) error {
	if err := t.flowOn(); err != nil {
		return err
	}
	if err := checkPlayerID("player_id", cmd.Player); err != nil {
		return err
	}
	if len(cmd.Blocked) > blockedMax {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "blocked: %d players, want at most %d", len(cmd.Blocked), blockedMax)
	}
	for _, blocked := range cmd.Blocked {
		if err := checkPlayerID("blocked", blocked); err != nil {
			return err
		}
	}
	r, ok := t.c.flow.Player(cmd.Player)
	if !ok { // somebody who comes later
		if err := t.roomForPlayer(); err != nil {
			return err
		}
		t.emit(&PlayerChanged{Player: cmd.Player, Blocked: slices.Clone(cmd.Blocked)})
		return nil
	}
	t.changePlayer(r, func(e *PlayerChanged) { e.Blocked = slices.Clone(cmd.Blocked) })
	return nil
}
