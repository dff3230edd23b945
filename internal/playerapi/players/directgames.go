package players

import (
	"context"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/calls"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/playerapi/rates"
	"github.com/musterhq/muster/internal/playerhooks"
)

// CreateGameRequest creates a player's own game.
type CreateGameRequest struct {
	Attributes *objects.Object `json:"attributes,omitempty" doc:"Attributes that the members of the game see."`
	MaxPlayers int32           `json:"max_players,omitempty" minimum:"0" maximum:"1000" doc:"0: as many as the service has it, which is the most, too."`
}

// JoinGameRequest takes a free seat in a running game.
type JoinGameRequest struct {
	GameInstanceID string `json:"game_instance_id" maxLength:"64"`
	Code           string `json:"code,omitempty" maxLength:"64" doc:"For the studio's backend, which defines its meaning. Refused if the service does not ask the backend."`
}

// UpdateGameRequest changes the attributes of the game that the player is in.
type UpdateGameRequest struct {
	Attributes objects.Object `json:"attributes" doc:"All of them: others are gone."`
}

func (d *door) declareDirectGames() {
	calls.Player(d.realm, "GameInstance.CreateGameInstance", rates.Party, "Makes a game of the player's own, without matchmaking. Off by default.", d.createGame)
	calls.Player(d.realm, "GameInstance.JoinGameInstance", rates.Party, "Takes a free seat in a game that runs. Off by default.", d.joinGame)
	calls.Player(d.realm, "GameInstance.UpdateGameInstance", rates.Party,
		"Changes the attributes of the player's game. Off unless the studio's backend is asked.", d.updateOwnGame)
}

// gameAfter returns the answer to an executed call, with the state of the player directly after it.
func (d *door) gameAfter(ctx context.Context, by *playerflow.Caller, err error) (*GameAnswer, error) {
	if err != nil {
		return nil, err
	}
	answer, err := d.gameNow(ctx, by.Player)
	if err != nil {
		return nil, err
	}
	answer.Flow = objects.StandOf(by.Flow)
	if answer.GameInstance != nil && answer.GameInstance.GameInstanceID != answer.Flow.Keys.GameInstanceID {
		answer.GameInstance = nil // the player has left it by now
	}
	return answer, nil
}

func (d *door) createGame(ctx context.Context, by *playerflow.Caller, body *CreateGameRequest) (*GameAnswer, error) {
	if err := problem.CheckSize("attributes", body.Attributes, objects.PartyAttributesMax); err != nil {
		return nil, err
	}
	cmd := playerflow.CreateGameInstance{Caller: *by, Plan: playerflow.GamePlan{ID: flow.InstanceID(objects.NewID())}, Size: body.MaxPlayers}
	if body.Attributes != nil {
		cmd.Plan.Attributes = string(*body.Attributes)
	}
	hooks := d.Hooks
	hooked := hooks.On(playerhooks.BeforeDirectJoin) || hooks.On(playerhooks.BuildPlayerData) || hooks.On(playerhooks.ChooseRegions)
	err := d.consulted(ctx, &cmd.Caller, &cmd, hooked, func() error { return d.planGame(ctx, &cmd) })
	return d.gameAfter(ctx, &cmd.Caller, err)
}

// planGame makes all hook calls about a game that a player wants to create.
func (d *door) planGame(ctx context.Context, cmd *playerflow.CreateGameInstance) error {
	plan := &cmd.Plan
	answer, err := playerhooks.Ask[playerhooks.DirectAnswer](ctx, d.Hooks, playerhooks.BeforeDirectJoin, playerhooks.Direct{
		PlayerID: cmd.Player, Action: purposeCreate, GameInstanceID: objects.ID(plan.ID), MaxPlayers: cmd.Size, Attributes: playerhooks.Object(plan.Attributes),
	})
	if err != nil {
		return err
	}
	plan.Queue, plan.PlayersMax, plan.Reconnect = answer.Queue, answer.MaxPlayers, objects.ReconnectOf(answer.Reconnect)
	plan.Name, plan.Data, plan.Properties = answer.Name, answer.GameSessionData, objects.PropertiesOf(answer.GameProperties)
	if answer.Attributes != nil {
		plan.Attributes = answer.Attributes.Text()
	}
	if cmd.Data, _, err = d.playerData(ctx, cmd.Player, purposeCreate, objects.ID(plan.ID)); err != nil {
		return err
	}
	if !d.Hooks.On(playerhooks.ChooseRegions) {
		return nil
	}
	q, err := d.searchOf(ctx, cmd.Player, purposeCreate)
	if err != nil {
		return err
	}
	q.GameInstanceID = objects.ID(plan.ID)
	regions, err := playerhooks.Ask[playerhooks.RegionsAnswer](ctx, d.Hooks, playerhooks.ChooseRegions, q)
	plan.Regions = regions.Regions
	return err
}

func (d *door) joinGame(ctx context.Context, by *playerflow.Caller, body *JoinGameRequest) (*GameAnswer, error) {
	instance, err := problem.ParseID[flow.InstanceID]("game_instance_id", body.GameInstanceID)
	if err != nil {
		return nil, err
	}
	hooks := d.Hooks
	if body.Code != "" && !hooks.On(playerhooks.BeforeDirectJoin) {
		return nil, problem.Invalid("code", "want none, because no hook of the studio's backend is configured to check it")
	}
	cmd := playerflow.JoinGameInstance{Caller: *by, Instance: instance}
	hooked := hooks.On(playerhooks.BeforeDirectJoin) || hooks.On(playerhooks.BuildPlayerData)
	err = d.consulted(ctx, &cmd.Caller, &cmd, hooked, func() error {
		answer, err := playerhooks.Ask[playerhooks.DirectAnswer](ctx, hooks, playerhooks.BeforeDirectJoin, playerhooks.Direct{
			PlayerID: by.Player, Action: purposeJoin, GameInstanceID: body.GameInstanceID, Code: body.Code,
		})
		if err != nil {
			return err
		}
		cmd.Team = answer.Team
		cmd.Data, _, err = d.playerData(ctx, by.Player, purposeJoin, body.GameInstanceID)
		return err
	})
	return d.gameAfter(ctx, &cmd.Caller, err)
}

func (d *door) updateOwnGame(ctx context.Context, by *playerflow.Caller, body *UpdateGameRequest) (*GameAnswer, error) {
	hooks := d.Hooks
	if !hooks.On(playerhooks.BeforePlayerUpdate) {
		return nil, problem.New(flow.PermissionDenied, "players may not change the attributes of games: no hook of the studio's backend is configured to check it")
	}
	if err := problem.CheckSize("attributes", &body.Attributes, objects.PartyAttributesMax); err != nil {
		return nil, err
	}
	cmd := playerflow.UpdateOwnGame{Caller: *by, Attributes: string(body.Attributes)}
	err := d.consulted(ctx, &cmd.Caller, &cmd, true, func() error {
		answer, err := playerhooks.Ask[playerhooks.UpdateAnswer](ctx, hooks, playerhooks.BeforePlayerUpdate, playerhooks.Update{
			PlayerID: by.Player, GameInstanceID: objects.ID(flow.InstanceID(cmd.Made)), Attributes: playerhooks.Object(body.Attributes),
		})
		cmd.Instance = flow.InstanceID(cmd.Made)
		if answer.Attributes != nil {
			cmd.Attributes = answer.Attributes.Text()
		}
		return err
	})
	return d.gameAfter(ctx, &cmd.Caller, err)
}
