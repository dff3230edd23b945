package players

import (
	"context"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/calls"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/playerapi/rates"
	"github.com/musterhq/muster/internal/playerhooks"
)

// GameAnswer is the game that the player is in.
type GameAnswer struct {
	GameInstance *objects.GameInstance `json:"game_instance,omitempty"`
	Flow         objects.Stand         `json:"flow"`
}

// GameRequest is about the player's game.
type GameRequest struct {
	GameInstanceID string `json:"game_instance_id" maxLength:"64"`
}

// HostAnswer has what a client needs to reach the game server.
type HostAnswer struct {
	Host *objects.HostConnectionDetails `json:"host,omitempty"`
	Flow objects.Stand                  `json:"flow"`
}

func (d *door) declareGames() {
	calls.Player(d.realm, "GameInstance.GetGameInstance", rates.Other, "The game that the player is in.",
		func(ctx context.Context, by *playerflow.Caller, _ *calls.None) (*GameAnswer, error) {
			answer, err := d.gameNow(ctx, by.Player)
			if err == nil && answer.GameInstance == nil {
				return nil, problem.New(flow.NotInGame, "player %s is in no game", by.Player)
			}
			return answer, err
		})
	calls.Player(d.realm, "GameInstance.GetHostConnectionDetails", rates.Details,
		"How to reach the game server. For a disconnected player it makes a new reservation on the held seat.", d.hostConnectionDetails)
	calls.Player(d.realm, "GameInstance.DeclineReconnect", rates.Decline, "Gives up the seat that is held for the player.",
		func(ctx context.Context, by *playerflow.Caller, body *GameRequest) (*Done, error) {
			instance, err := problem.ParseID[flow.InstanceID]("game_instance_id", body.GameInstanceID)
			if err != nil {
				return nil, err
			}
			cmd := playerflow.DeclineReconnect{Caller: *by, Instance: instance}
			err = d.State.Do(ctx, &cmd)
			return &Done{objects.StandOf(cmd.Flow)}, err
		})
	calls.Player(d.realm, "GameInstance.LeaveGame", rates.LeaveGame, "Leaves the game permanently.",
		func(ctx context.Context, by *playerflow.Caller, body *GameRequest) (*Done, error) {
			instance, err := problem.ParseID[flow.InstanceID]("game_instance_id", body.GameInstanceID)
			if err != nil {
				return nil, err
			}
			cmd := playerflow.LeaveGame{Caller: *by, Instance: instance}
			err = d.State.Do(ctx, &cmd)
			return &Done{objects.StandOf(cmd.Flow)}, err
		})
	d.declareDirectGames()
}

func (d *door) hostConnectionDetails(ctx context.Context, by *playerflow.Caller, body *GameRequest) (*HostAnswer, error) {
	instance, err := problem.ParseID[flow.InstanceID]("game_instance_id", body.GameInstanceID)
	if err != nil {
		return nil, err
	}
	cmd := playerflow.GetHostConnectionDetails{Caller: *by, Instance: instance}
	err = d.consulted(ctx, &cmd.Caller, &cmd, d.Hooks.On(playerhooks.BuildPlayerData), func() error {
		data, known, err := d.playerData(ctx, by.Player, purposeReconnect, body.GameInstanceID)
		if known {
			cmd.Data = &data
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if cmd.Lost {
		// This is not a refusal of the core, because the call has ended the membership.
		return nil, problem.New(flow.GameFull, "game instance %s is full, and the seat was not kept", body.GameInstanceID)
	}
	answer := &HostAnswer{Flow: objects.StandOf(cmd.Flow)}
	if cmd.Host != nil {
		answer.Host = d.State.Objects.Host(by.Player, cmd.Host)
	}
	return answer, nil
}

func (d *door) gameNow(ctx context.Context, player string) (*GameAnswer, error) {
	answer := &GameAnswer{}
	err := d.State.Read(ctx, func(v *cell.View) error {
		s, ok := v.FlowOf(player, d.State.Instant())
		answer.Flow = objects.StandOf(s.Record)
		if ok && s.Game != nil {
			answer.GameInstance = d.State.Objects.Game(player, s.Game)
		}
		return nil
	})
	return answer, err
}
