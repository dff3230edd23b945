package playerflow

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
)

// GetHostConnectionDetails returns how to reach the game server. It may make a new reservation, for a return to a held
// seat or a takeover from another device. Made is the player session.
type GetHostConnectionDetails struct {
	Caller
	Instance flow.InstanceID
	Data     *string // PlayerData of a new reservation; nil: that of the previous one

	// Result
	Host *flow.Host // nil in the answer to a repeat after the player has left the game
	// Lost reports that the seat was not held and no other one is free: the answer is GAME_FULL, and the membership has
	// ended. It is not a refusal, because the state has changed.
	Lost bool
}

func (cmd *GetHostConnectionDetails) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, done, err := t.caller(&cmd.Caller, "GetHostConnectionDetails")
	if err != nil {
		return err
	}
	if done {
		if m := t.Flow.Players.Get(r).Membership(); m != 0 && t.Flow.Memberships.Get(m).Instance == cmd.Instance {
			cmd.Host = t.HostOf(t.Flow.Memberships.Get(m))
		}
		cmd.Lost = cmd.Made.IsZero()
		return nil
	}
	if cmd.Look {
		reach, err := t.Memberships.mayReach(r, cmd.Instance)
		cmd.Would = err == nil && !reach.again && !reach.lost
		return err
	}
	cmd.Host, err = t.Memberships.connectionDetails(r, cmd.Instance, cmd.Data)
	if err != nil {
		return err
	}
	if cmd.Lost = cmd.Host == nil; !cmd.Lost {
		cmd.Made = domain.UUID(cmd.Host.Session)
	}
	return nil
}

// DeclineReconnect gives up the seat that is held for the caller.
type DeclineReconnect struct {
	Caller
	Instance flow.InstanceID
}

func (cmd *DeclineReconnect) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	ref, done, err := t.Memberships.gameCaller(&cmd.Caller, "DeclineReconnect", cmd.Instance)
	if err != nil || done {
		return err
	}
	m := t.Flow.Memberships.Get(ref)
	if mode := t.Flow.Instances.Get(m.InstanceRef()).Rules.Reconnect; mode != flow.ReconnectOptional {
		return flow.Refuse(flow.Refusal{Code: flow.CannotDeclineReconnect}, "reconnect is %s in game instance %s", mode, cmd.Instance)
	}
	if !t.mayDecline(m) {
		return flow.Refuse(flow.Refusal{Code: flow.NotDisconnected}, "player %s is %s in game instance %s", cmd.Player, m.Status, cmd.Instance)
	}
	t.Memberships.end(ref, flow.DeclinedReconnect)
	return nil
}

// LeaveGame leaves the game for good.
type LeaveGame struct {
	Caller
	Instance flow.InstanceID
}

func (cmd *LeaveGame) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	ref, done, err := t.Memberships.gameCaller(&cmd.Caller, "LeaveGame", cmd.Instance)
	if err != nil || done {
		return err
	}
	if t.Flow.Instances.Get(t.Flow.Memberships.Get(ref).InstanceRef()).Rules.Reconnect == flow.ReconnectRequired {
		return flow.Refuse(flow.Refusal{Code: flow.LeaveNotAllowed}, "game instance %s may not be left: reconnect is REQUIRED", cmd.Instance)
	}
	t.Memberships.end(ref, flow.Left)
	return nil
}

// CreateGameInstance creates a game instance at a player's request. Made is its id. It is off by default.
type CreateGameInstance struct {
	Caller
	Plan GamePlan // the studio's values; the service's defaults fill in a missing queue, size or latencies
	Data string   // PlayerData of the player
	Size int32    // number of players that the caller wants; 0: the service's default. The studio's value takes precedence
}

// Hold implements quota.Taker.
func (cmd *CreateGameInstance) Hold(h quota.Holder) { cmd.Plan.Holder = h }

func (cmd *CreateGameInstance) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, done, err := t.caller(&cmd.Caller, "CreateGameInstance")
	if err != nil || done {
		return err
	}
	if err := t.mayPlayDirectly(r); err != nil {
		return err
	}
	plan := cmd.Plan
	if err := t.Games.completePlan(&plan, r, cmd.Size); err != nil {
		return err
	}
	if plan.Queue == "" && cmd.looks() { // the studio may still name one
		return nil
	}
	if plan.Queue == "" {
		return flow.Refuse(flow.Refusal{Code: flow.JoinNotAllowed}, "no queue is configured for the game instances of players")
	}
	plan.Players = []PlannedPlayer{{Player: cmd.Player, Data: cmd.Data}}
	begin, err := t.Games.checkPlan(&plan)
	if err != nil || cmd.looks() {
		return err
	}
	begin()
	cmd.Made = domain.UUID(plan.ID)
	return nil
}

// JoinGameInstance takes a free seat in an active game instance. Made is the instance's id. It is off by default.
type JoinGameInstance struct {
	Caller
	Instance flow.InstanceID
	Team     string
	Data     string // PlayerData of the player
}

func (cmd *JoinGameInstance) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, done, err := t.caller(&cmd.Caller, "JoinGameInstance")
	if err != nil || done {
		return err
	}
	if err := t.mayPlayDirectly(r); err != nil {
		return err
	}
	if !t.Config.Games.DirectJoin {
		return flow.Refuse(flow.Refusal{Code: flow.JoinNotAllowed}, "players may not join game instances: the option directJoin is off")
	}
	x, err := t.Games.live(cmd.Instance)
	if err != nil {
		return err
	}
	if err := t.Games.hasRoom(x, 1); err != nil {
		return err
	}
	if !t.Games.letsIn(x) {
		return flow.Refuse(flow.Refusal{Code: flow.JoinNotAllowed}, "the game session of %s accepts no new players (DENY_ALL)", cmd.Instance)
	}
	if cmd.looks() {
		return nil
	}
	t.Memberships.addSeated(x, newMember{player: r, team: cmd.Team, data: cmd.Data})
	cmd.Made = domain.UUID(cmd.Instance)
	return nil
}

// UpdateOwnGame changes the attributes of the caller's game instance. Made is its id.
type UpdateOwnGame struct {
	Caller
	Attributes string          // a JSON object
	Instance   flow.InstanceID // the one that the studio was asked about; zero: any
}

func (cmd *UpdateOwnGame) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, done, err := t.caller(&cmd.Caller, "UpdateGameInstance")
	if err != nil || done {
		return err
	}
	p := t.Flow.Players.Get(r)
	if p.Membership() == 0 || !cmd.Instance.IsZero() && cmd.Instance != p.Keys.Game {
		return flow.Refuse(flow.Refusal{Code: flow.NotInGame}, "player %s is in no game, or in another one", p.ID)
	}
	cmd.Made = domain.UUID(p.Keys.Game)
	x := t.Flow.Memberships.Get(p.Membership()).InstanceRef()
	if t.Flow.Instances.Get(x).Status == flow.InstanceEnding {
		return flow.Refuse(flow.Refusal{Code: flow.GameIsEnding}, "game instance %s is about to end", flow.InstanceID(cmd.Made))
	}
	if cmd.looks() {
		return nil
	}
	t.changeInstance(x, func(x *flow.Instance) { x.Attributes = cmd.Attributes })
	var players []string
	for _, m := range t.Flow.Instances.Get(x).Members() {
		players = append(players, t.Flow.Memberships.Get(m).Player)
	}
	t.tellPlayers(flow.OnGameInstanceUpdated, flow.Message{Instance: flow.InstanceID(cmd.Made), Attributes: cmd.Attributes}, players...)
	return nil
}
