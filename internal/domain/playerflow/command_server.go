package playerflow

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
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
func (t *Tx) checkPlan(plan *GamePlan) (begin func(), err error) {
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
	rules := t.Config.Games.Rules
	if plan.Reconnect != 0 {
		rules.Reconnect = plan.Reconnect
	}
	start := placement.Placement{
		ID: "gi-" + plan.ID.String(), Queue: plan.Queue, PlayersMax: plan.PlayersMax, Name: plan.Name, Data: plan.Data,
		Properties: flowProperties(plan.Properties, plan.ID, rules.Reconnect, ""), Latencies: plan.Latencies, Regions: plan.Regions,
	}
	if !rules.ManualReady {
		for _, x := range plan.Players {
			start.Players = append(start.Players, placement.Player{Player: x.Player, Data: x.Data, ID: domain.PlayerSessionID(t.NewID())})
		}
	}
	if int32(len(plan.Players)) > plan.PlayersMax {
		return nil, flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "players: %d, but the maximum is %d", len(plan.Players), plan.PlayersMax)
	}
	if err := t.hosting.CheckPlacement(&start); err != nil {
		return nil, err
	}
	return func() {
		t.beginInstance(flow.Instance{ID: plan.ID, Rules: rules, Placement: start.ID, Attributes: plan.Attributes}, members)
		t.hosting.BeginPlacement(start)
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

func (cmd *MakeGame) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	if r, ok := t.Flow.Instance(cmd.Plan.ID); ok {
		cmd.Instance, cmd.Repeated = *t.Flow.Instances.Get(r), true
		return nil
	}
	begin, err := t.checkPlan(&cmd.Plan)
	if err != nil {
		return err
	}
	t.Cause = "Flow.CreateGameInstance"
	begin()
	r, _ := t.Flow.Instance(cmd.Plan.ID)
	cmd.Instance = *t.Flow.Instances.Get(r)
	return nil
}

// ReadyGame says that a server takes players (Game.Ready). It matters only with manualReady.
type ReadyGame struct{ Instance domain.UUID }

func (cmd *ReadyGame) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.servedInstance(cmd.Instance, "Game.Ready")
	if err != nil {
		return err
	}
	switch x := t.Flow.Instances.Get(r); {
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
func (t *Tx) servedInstance(id domain.UUID, cause string) (flow.InstanceRef, error) {
	if err := t.flowOn(); err != nil {
		return 0, err
	}
	t.Cause = cause
	r, err := t.liveInstance(id)
	if err == nil && t.Flow.Instances.Get(r).Status == flow.InstancePending {
		err = flow.Refuse(flow.Refusal{Code: flow.HostNotReady}, "game instance gi-%s has no host yet", id)
	}
	return r, err
}

// ConnectMember says that a player has connected to the game server (Game.PlayerConnected): the same as AcceptPlayer, for
// a server that is known by its game session.
type ConnectMember struct {
	Instance      domain.UUID
	PlayerSession domain.PlayerSessionID
}

func (cmd *ConnectMember) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
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
		return domain.Refuse(domain.WrongPlayerState, "player session %s is %s, not RESERVED", p.ID, p.Status)
	}
	t.hosting.Accept(p, 0)
	return nil
}

// sessionOf finds a player session in the game session of a game instance.
func (t *Tx) sessionOf(r flow.InstanceRef, id domain.PlayerSessionID) (*session.PlayerSession, error) {
	p, ok := t.hosting.FindPlayer(id)
	if !ok || string(t.hosting.Game(t.hosting.PlayerSession(p).Game).ID) != t.Flow.Instances.Get(r).Game {
		return nil, flow.Refuse(flow.Refusal{Code: flow.InvalidToken}, "player session %s is not one of this game", id)
	}
	return t.hosting.PlayerSession(p), nil
}

// DisconnectMember says that a player's game connection is gone (Game.PlayerDisconnected), and whether the player wanted
// it so.
type DisconnectMember struct {
	Instance      domain.UUID
	PlayerSession domain.PlayerSessionID
	Quit          bool

	// Result: Stale when the player session is not the current one of the player: nothing was done about the player.
	Stale bool
}

func (cmd *DisconnectMember) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.servedInstance(cmd.Instance, "Game.PlayerDisconnected")
	if err != nil {
		return err
	}
	p, err := t.sessionOf(r, cmd.PlayerSession)
	if err != nil {
		return err
	}
	player, id, live, game := p.Player, p.ID, p.Status.Live(), p.Game
	last := t.SeatEnding(player, id)
	m, next, ok := t.memberOf(player, id)
	cmd.Stale = !ok || next || !live
	if live {
		t.hosting.EndSeat(id, session.Completed)
	}
	switch {
	case cmd.Stale && next && live:
		t.changeMembership(m, func(m *flow.Membership) { m.Next = domain.PlayerSessionID{} })
	case cmd.Stale:
	case cmd.Quit:
		t.endMembership(m, flow.Left)
	case t.Flow.Memberships.Get(m).Status == flow.MemberReserved:
		t.reservationOver(m, last)
	default:
		t.connectionLost(m)
	}
	t.matchmaking.PlayerLeft(game)
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

func (cmd *RemoveMembers) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
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
		current := t.Flow.Memberships.Get(m).Session
		player, unasked := t.Flow.Memberships.Get(m).PlayerRef(), t.Flow.Memberships.Get(m).Unasked
		t.endMembershipWith(m, flow.Removed, x.Result)
		t.completeSession(current)
		if x.Penalise && x.Reason == flow.RemovedAFK && !unasked {
			t.penalise(player, flow.AFK, cmd.Instance, x.Reason)
		}
	}
	return nil
}

func (c *State) memberIn(r flow.InstanceRef, player string) (flow.MembershipRef, bool) {
	p, ok := c.Flow.Player(player)
	if !ok || c.Flow.Players.Get(p).Membership() == 0 {
		return 0, false
	}
	m := c.Flow.Players.Get(p).Membership()
	return m, c.Flow.Memberships.Get(m).InstanceRef() == r
}

// wentOut reports whether a player's last game was this one, and ended for the player by the same call: it is a repeat.
func (t *Tx) wentOut(instance domain.UUID, player string, why flow.Reason) bool {
	p, ok := t.Flow.Player(player)
	if !ok {
		return false
	}
	last := t.Flow.Players.Get(p).LastGame
	return last != nil && last.Instance == instance && last.Membership == why
}

// completeSession ends a player session that is still live.
func (t *Tx) completeSession(id domain.PlayerSessionID) {
	if p, ok := t.hosting.FindPlayer(id); ok && t.hosting.PlayerSession(p).Status.Live() {
		t.hosting.EndSeat(id, session.Completed)
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

func (cmd *ReleaseMembers) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
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

func (cmd *AddMembers) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
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
func (t *Tx) wasIn(instance domain.UUID, r flow.PlayerRef) bool {
	last := t.Flow.Players.Get(r).LastGame
	return last != nil && last.Instance == instance
}

// UpdateGame changes what a game server says about the game and its players (Game.Update).
type UpdateGame struct {
	Instance         domain.UUID
	Attributes       *string
	PlayerAttributes map[string]string
	Unranked         *bool // leaving it is no offence from now on
}

func (cmd *UpdateGame) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.servedInstance(cmd.Instance, "Game.Update")
	if err != nil {
		return err
	}
	t.changeInstance(r, func(x *flow.Instance) {
		kernel.Patch(&x.Attributes, cmd.Attributes)
		kernel.Patch(&x.Unranked, cmd.Unranked)
	})
	var players []string
	for _, m := range slices.Clone(t.Flow.Instances.Get(r).Members()) {
		player := t.Flow.Memberships.Get(m).Player
		if own, ok := cmd.PlayerAttributes[player]; ok {
			t.changeMembership(m, func(m *flow.Membership) { m.Attributes = own })
		}
		players = append(players, player)
	}
	t.tellPlayers(flow.OnGameInstanceUpdated, flow.Message{Instance: cmd.Instance, Attributes: t.Flow.Instances.Get(r).Attributes}, players...)
	return nil
}

// KeepGameAlive is the sign of life of a game server that promised them (Game.KeepAlive).
type KeepGameAlive struct{ Instance domain.UUID }

func (cmd *KeepGameAlive) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, err := t.servedInstance(cmd.Instance, "Game.KeepAlive")
	if err != nil {
		return err
	}
	x := t.Flow.Instances.Get(r)
	if x.Rules.KeepAlive == 0 {
		return nil
	}
	missed, game := x.MissedOne, x.Game
	t.changeInstance(r, func(x *flow.Instance) { x.MissedOne, x.KeepAliveBy = false, t.Contact.Add(x.Rules.KeepAlive) })
	if g, ok := t.hosting.FindGame(session.ID(game)); ok && missed && t.hosting.Game(g).Process != 0 {
		t.HostChanged(t.hosting.Process(fleet.ProcessRef(t.hosting.Game(g).Process)).Key)
	}
	return nil
}

// EndGame says that the game is over, with its results (Game.EndGame). A second one changes nothing.
type EndGame struct {
	Instance domain.UUID
	Result   string            // a JSON object; empty for none
	Results  map[string]string // of single players
}

func (cmd *EndGame) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	r, ok := t.Flow.Instance(cmd.Instance)
	if !ok {
		return flow.Refuse(flow.Refusal{Code: flow.GameInstanceNotFound}, "game instance gi-%s not found", cmd.Instance)
	}
	t.Cause = "Game.EndGame"
	if x := t.Flow.Instances.Get(r); x.Live() {
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

func (cmd *SetPlayerAttributes) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	if err := checkPlayerID("player_id", cmd.Player); err != nil {
		return err
	}
	e := &PlayerChanged{Player: cmd.Player, Profile: &flow.Profile{Trusted: cmd.Attributes}}
	r, ok := t.Flow.Player(cmd.Player)
	if !ok {
		if err := t.roomForPlayer(); err != nil {
			return err
		}
		t.Emit(e)
		return nil
	}
	profile := profileOf(t.Flow.Players.Get(r))
	profile.Trusted = cmd.Attributes
	t.changePlayer(r, func(e *PlayerChanged) { e.Profile = &profile })
	return nil
}

// SetBlocks says with whom a player wants neither invites nor a common party.
type SetBlocks struct {
	Player  string
	Blocked []string
}

// BlockedMax bounds a player's list.
const BlockedMax = 1000

func (cmd *SetBlocks) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	if err := checkPlayerID("player_id", cmd.Player); err != nil {
		return err
	}
	if len(cmd.Blocked) > BlockedMax {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "blocked: %d players, want at most %d", len(cmd.Blocked), BlockedMax)
	}
	for _, blocked := range cmd.Blocked {
		if err := checkPlayerID("blocked", blocked); err != nil {
			return err
		}
	}
	r, ok := t.Flow.Player(cmd.Player)
	if !ok { // somebody who comes later
		if err := t.roomForPlayer(); err != nil {
			return err
		}
		t.Emit(&PlayerChanged{Player: cmd.Player, Blocked: slices.Clone(cmd.Blocked)})
		return nil
	}
	t.changePlayer(r, func(e *PlayerChanged) { e.Blocked = slices.Clone(cmd.Blocked) })
	return nil
}
