package playerapi

import (
	"context"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerhooks"
)

// GameAnswer is the game that the player is in.
type GameAnswer struct {
	GameInstance *GameInstance `json:"game_instance,omitempty"`
	Flow         Stand         `json:"flow"`
}

// GameRequest is about the player's game.
type GameRequest struct {
	GameInstanceID string `json:"game_instance_id" maxLength:"64"`
}

// HostAnswer is how to reach the game server.
type HostAnswer struct {
	Host *HostConnectionDetails `json:"host,omitempty"`
	Flow Stand                  `json:"flow"`
}

func (d *playersDoor) declareGames() {
	declarePlayer(d.realm, "GameInstance.GetGameInstance", classOther, "The game that the player is in.",
		func(ctx context.Context, by *cell.Caller, _ *None) (*GameAnswer, error) {
			answer, err := d.gameNow(ctx, by.Player)
			if err == nil && answer.GameInstance == nil {
				return nil, refusal(flow.NotInGame, "player %s is in no game", by.Player)
			}
			return answer, err
		})
	declarePlayer(d.realm, "GameInstance.GetHostConnectionDetails", classDetails,
		"How to reach the game server. To a player who lost the connection it gives a fresh reservation on the kept seat.", d.hostConnectionDetails)
	declarePlayer(d.realm, "GameInstance.DeclineReconnect", classDecline, "Gives up the seat that is kept.",
		func(ctx context.Context, by *cell.Caller, body *GameRequest) (*Done, error) {
			instance, err := parseID("game_instance_id", "gi-", body.GameInstanceID)
			if err != nil {
				return nil, err
			}
			cmd := cell.DeclineReconnect{Caller: *by, Instance: instance}
			err = d.State.Do(ctx, &cmd)
			return &Done{standOf(cmd.Flow)}, err
		})
	declarePlayer(d.realm, "GameInstance.LeaveGame", classLeaveGame, "Goes out of the game for good.",
		func(ctx context.Context, by *cell.Caller, body *GameRequest) (*Done, error) {
			instance, err := parseID("game_instance_id", "gi-", body.GameInstanceID)
			if err != nil {
				return nil, err
			}
			cmd := cell.LeaveGame{Caller: *by, Instance: instance}
			err = d.State.Do(ctx, &cmd)
			return &Done{standOf(cmd.Flow)}, err
		})
	d.declareDirectGames()
}

func (d *playersDoor) hostConnectionDetails(ctx context.Context, by *cell.Caller, body *GameRequest) (*HostAnswer, error) {
	instance, err := parseID("game_instance_id", "gi-", body.GameInstanceID)
	if err != nil {
		return nil, err
	}
	cmd := cell.GetHostConnectionDetails{Caller: *by, Instance: instance}
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
		// No refusal of the core: the membership has ended by it.
		return nil, refusal(flow.GameFull, "game instance %s is full, and the seat was not kept", body.GameInstanceID)
	}
	answer := &HostAnswer{Flow: standOf(cmd.Flow)}
	if cmd.Host != nil {
		answer.Host = d.State.Objects.Host(by.Player, cmd.Host)
	}
	return answer, nil
}

func (d *playersDoor) gameNow(ctx context.Context, player string) (*GameAnswer, error) {
	answer := &GameAnswer{}
	err := d.State.Read(ctx, func(v *cell.View) error {
		s, ok := v.FlowOf(player, d.State.Instant())
		answer.Flow = standOf(s.Stand)
		if ok && s.Game != nil {
			answer.GameInstance = d.State.Objects.Game(player, s.Game)
		}
		return nil
	})
	return answer, err
}
