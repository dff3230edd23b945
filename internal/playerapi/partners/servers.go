package partners

import (
	"context"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerapi/calls"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/signin"
)

// ExchangeRequest has a game server process and the token with which it connects to the service.
type ExchangeRequest struct {
	AuthToken     string `json:"auth_token" maxLength:"64" doc:"The auth token of the process's compute: a valid one, or the one with which the process was started."`
	ProcessID     string `json:"process_id" maxLength:"1024"`
	GameSessionID string `json:"game_session_id" maxLength:"1024"`
}

// ExchangeAnswer is a token for the calls of one game.
type ExchangeAnswer struct {
	PartnerToken   string `json:"partner_token"`
	GameInstanceID string `json:"game_instance_id"`
}

// OneGameRequest names one game. A game server may omit the id, which its token contains.
type OneGameRequest struct {
	GameInstanceID string `json:"game_instance_id,omitempty" maxLength:"64"`
}

// VerifyRequest has the connection token of a player.
type VerifyRequest struct {
	GameInstanceID  string `json:"game_instance_id,omitempty" maxLength:"64"`
	PlayerSessionID string `json:"player_session_id" maxLength:"64"`
	ConnectionToken string `json:"connection_token" maxLength:"4096"`
}

// VerifyAnswer identifies the player.
type VerifyAnswer struct {
	PlayerID       string `json:"player_id"`
	GameInstanceID string `json:"game_instance_id"`
	Attempt        int32  `json:"attempt"`
	Team           string `json:"team,omitempty"`
	PartyID        string `json:"party_id,omitempty"`
}

// ConnectedRequest is about a player session.
type ConnectedRequest struct {
	GameInstanceID  string `json:"game_instance_id,omitempty" maxLength:"64"`
	PlayerSessionID string `json:"player_session_id" maxLength:"64"`
}

// DisconnectedRequest has the reason why a player's connection ended.
type DisconnectedRequest struct {
	GameInstanceID  string `json:"game_instance_id,omitempty" maxLength:"64"`
	PlayerSessionID string `json:"player_session_id" maxLength:"64"`
	Reason          string `json:"reason" enum:"CONNECTION_LOST,QUIT"`
}

// DisconnectedAnswer reports whether the call had an effect.
type DisconnectedAnswer struct {
	Stale bool `json:"stale" doc:"The player has a newer player session, so nothing was changed."`
}

// RemovePlayersRequest removes players from a game, which continues.
type RemovePlayersRequest struct {
	GameInstanceID string         `json:"game_instance_id,omitempty" maxLength:"64"`
	Players        []RemovePlayer `json:"players" minItems:"1" maxItems:"200"`
}

// RemovePlayer is a player to remove, with the reason.
type RemovePlayer struct {
	PlayerID string          `json:"player_id" minLength:"1" maxLength:"128"`
	Reason   string          `json:"reason" enum:"KICKED,AFK,ELIMINATED,OTHER"`
	Penalise bool            `json:"penalise,omitempty"`
	Result   *objects.Object `json:"result,omitempty"`
}

// ReleasePlayersRequest releases players, never with a penalty.
type ReleasePlayersRequest struct {
	GameInstanceID string          `json:"game_instance_id,omitempty" maxLength:"64"`
	PlayerIDs      []string        `json:"player_ids" minItems:"1" maxItems:"200"`
	Result         *objects.Object `json:"result,omitempty"`
}

// UnknownAnswer lists the players who were not in the game.
type UnknownAnswer struct {
	Unknown []string `json:"unknown"`
}

// AddPlayersRequest seats players who are idle or in a party.
type AddPlayersRequest struct {
	GameInstanceID string        `json:"game_instance_id,omitempty" maxLength:"64"`
	Players        []SeatRequest `json:"players" minItems:"1" maxItems:"200"`
}

// AddPlayersAnswer lists the players who could not be seated.
type AddPlayersAnswer struct {
	Failed []FailedPlayer `json:"failed"`
}

// FailedPlayer is a player who could not be seated, with the reason.
type FailedPlayer struct {
	PlayerID string       `json:"player_id"`
	Code     problem.Code `json:"code"`
}

// UpdateRequest changes the server's report about the game.
type UpdateRequest struct {
	GameInstanceID   string                    `json:"game_instance_id,omitempty" maxLength:"64"`
	Attributes       *objects.Object           `json:"attributes,omitempty"`
	PlayerAttributes map[string]objects.Object `json:"player_attributes,omitempty"`
	UnrankedLeaveOK  *bool                     `json:"unranked_leave_ok,omitempty" doc:"Leaving the game is no offence from now on."`
}

// EndGameRequest is the game's results.
type EndGameRequest struct {
	GameInstanceID string                    `json:"game_instance_id,omitempty" maxLength:"64"`
	Result         *objects.Object           `json:"result,omitempty"`
	Results        map[string]objects.Object `json:"results,omitempty" doc:"Of single players."`
}

func (d *door) declareServers() {
	calls.Partner(d.realm, "Server.Exchange", "A game server gets a token for the calls of its game.", d.exchange)
	calls.Partner(d.realm, "Game.GetStartData", "The game and its players.", d.startData)
	calls.Partner(d.realm, "Game.VerifyPlayer", "Checks the connection token of a player.", d.verifyPlayer)
	gameCall(d, "Game.Ready", "Reports that the server takes players. Needed only with manual ready.",
		func(instance flow.InstanceID) kernel.Command { return &playerflow.ReadyGame{Instance: instance} })
	gameCall(d, "Game.KeepAlive", "A heartbeat of a server that has announced heartbeats.",
		func(instance flow.InstanceID) kernel.Command { return &playerflow.KeepGameAlive{Instance: instance} })
	calls.Partner(d.realm, "Game.PlayerConnected", "Reports that the player is in the game, like accepting the player session.",
		func(ctx context.Context, _ string, body *ConnectedRequest) (*calls.None, error) {
			instance, player, err := playerSessionFor(ctx, body.GameInstanceID, body.PlayerSessionID)
			if err != nil {
				return nil, err
			}
			return &calls.None{}, d.State.Do(ctx, &playerflow.ConnectMember{Instance: instance, PlayerSession: player})
		})
	calls.Partner(d.realm, "Game.PlayerDisconnected", "Reports that the player's connection has ended, and whether the player wanted that.",
		func(ctx context.Context, _ string, body *DisconnectedRequest) (*DisconnectedAnswer, error) {
			instance, player, err := playerSessionFor(ctx, body.GameInstanceID, body.PlayerSessionID)
			if err != nil {
				return nil, err
			}
			cmd := playerflow.DisconnectMember{Instance: instance, PlayerSession: player, Quit: body.Reason == "QUIT"}
			err = d.State.Do(ctx, &cmd)
			return &DisconnectedAnswer{cmd.Stale}, err
		})
	calls.Partner(d.realm, "Game.RemovePlayers", "Removes players from a game, which continues.", d.removePlayers)
	calls.Partner(d.realm, "Game.ReleasePlayers", "Releases players, never with a penalty.",
		func(ctx context.Context, _ string, body *ReleasePlayersRequest) (*UnknownAnswer, error) {
			instance, err := principal.Of(ctx).InstanceFor(body.GameInstanceID)
			if err == nil {
				err = problem.CheckSize("result", body.Result, objects.PlayerAttributesMax)
			}
			if err != nil {
				return nil, err
			}
			cmd := playerflow.ReleaseMembers{Instance: instance, Players: body.PlayerIDs, Result: body.Result.OrNothing()}
			err = d.State.Do(ctx, &cmd)
			return &UnknownAnswer{objects.OrEmpty(cmd.Unknown)}, err
		})
	calls.Partner(d.realm, "Game.AddPlayers", "Seats players who are idle or in a party. A game server may seat again the players who were in its game; others fail with JOIN_NOT_ALLOWED.", d.addPlayers)
	calls.Partner(d.realm, "Game.Update", "Changes the server's report about the game and its players.", d.updateGame)
	calls.Partner(d.realm, "Game.EndGame", "The game is over. A second call changes nothing.",
		func(ctx context.Context, _ string, body *EndGameRequest) (*calls.None, error) {
			instance, err := principal.Of(ctx).InstanceFor(body.GameInstanceID)
			if err == nil {
				err = problem.CheckSize("result", body.Result, objects.PartyAttributesMax)
			}
			if err == nil {
				err = checkSizes("results", body.Results, objects.PlayerAttributesMax)
			}
			if err != nil {
				return nil, err
			}
			return &calls.None{}, d.State.Do(ctx, &playerflow.EndGame{Instance: instance, Result: body.Result.OrNothing(), Results: texts(body.Results)})
		})
}

// gameCall declares a call whose only argument is the game.
func gameCall(d *door, name, summary string, command func(instance flow.InstanceID) kernel.Command) {
	calls.Partner(d.realm, name, summary, func(ctx context.Context, _ string, body *OneGameRequest) (*calls.None, error) {
		instance, err := principal.Of(ctx).InstanceFor(body.GameInstanceID)
		if err != nil {
			return nil, err
		}
		return &calls.None{}, d.State.Do(ctx, command(instance))
	})
}

// checkSizes refuses objects by player of which one has more than most bytes.
func checkSizes(field string, all map[string]objects.Object, most int) error {
	for _, player := range slices.Sorted(maps.Keys(all)) {
		if x := all[player]; len(x) > most {
			return problem.CheckSize(field, &x, most)
		}
	}
	return nil
}

func texts(objects map[string]objects.Object) map[string]string {
	all := make(map[string]string, len(objects))
	for key, x := range objects {
		all[key] = string(x)
	}
	return all
}

func playerSessionFor(ctx context.Context, instance, player string) (i flow.InstanceID, p domain.PlayerSessionID, err error) {
	if i, err = principal.Of(ctx).InstanceFor(instance); err == nil {
		p, err = problem.ParseID[domain.PlayerSessionID]("player_session_id", player)
	}
	return i, p, err
}

func (d *door) exchange(ctx context.Context, _ string, body *ExchangeRequest) (*ExchangeAnswer, error) {
	wrong := problem.New(flow.Unauthenticated, "the token, the process and the game session do not belong together")
	game, _ := session.CutARN(body.GameSessionID)
	var instance flow.InstanceID
	err := d.State.Read(ctx, func(v *cell.View) error {
		g, ok := v.GameSession(game)
		if !ok || g.ProcessID != body.ProcessID {
			return wrong
		}
		compute, ok := v.Compute(g.FleetID, g.ComputeName)
		if !ok {
			return wrong
		}
		// The newest token, the previous one, and the one with which the process was started are valid, because a game does not see
		// tokens that its SDK fetched later.
		generations := []uint32{compute.TokenGeneration, max(compute.TokenGeneration, 1) - 1}
		if p, ok := v.Process(fleet.Key{Fleet: g.FleetID, Compute: g.ComputeName, Process: g.ProcessID}); ok && p.State != fleet.Ended {
			generations = append(generations, p.Token)
		}
		for _, generation := range generations {
			if generation > compute.TokensVoid && d.Auth.Secret.Accepts("auth token of a compute", func(s identity.CellSecret) bool {
				return identity.Equal(body.AuthToken, s.ProcessToken(g.FleetID, g.ComputeName, compute.Registration, generation))
			}) {
				if instance, ok = v.GameInstanceOf(g.ID); !ok {
					if ended, ok := endedInstance(v, &g); ok {
						return gameOver(ended)
					}
					return problem.New(flow.GameInstanceNotFound, "game session %s hosts no game instance of player flow", body.GameSessionID)
				}
				return nil
			}
		}
		return wrong
	})
	if err == wrong {
		return nil, authentication.Failed(d.Auth.Signins.Partners, signin.Failure{From: principal.Of(ctx).Address, Reason: signin.WrongToken}, wrong)
	}
	if err != nil {
		return nil, err
	}
	return &ExchangeAnswer{d.Auth.ServerToken(instance), objects.ID(instance)}, nil
}

// endedInstance returns the game instance that a game session hosted, if its record still exists.
func endedInstance(v *cell.View, g *session.GameSession) (flow.InstanceID, bool) {
	for _, p := range g.Properties {
		if p.Key != playerflow.InstanceProperty {
			continue
		}
		id, err := domain.ParseID[flow.InstanceID](p.Value)
		x, _, known := v.GameInstance(id)
		return id, err == nil && known && !x.Live()
	}
	return flow.InstanceID{}, false
}

func (d *door) startData(ctx context.Context, _ string, body *OneGameRequest) (*objects.StartDataAnswer, error) {
	instance, err := principal.Of(ctx).InstanceFor(body.GameInstanceID)
	if err != nil {
		return nil, err
	}
	var answer *objects.StartDataAnswer
	err = d.State.Read(ctx, func(v *cell.View) error {
		x, members, ok := v.GameInstance(instance)
		if !ok {
			return problem.New(flow.GameInstanceNotFound, "game instance %s not found", objects.ID(instance))
		}
		if !x.Live() {
			return gameOver(instance)
		}
		answer = objects.StartDataOf(&x, members)
		return nil
	})
	return answer, err
}

// gameOver returns the answer to every call of a game that has ended, except Game.EndGame, which then succeeds without an effect.
func gameOver(instance flow.InstanceID) *problem.Problem {
	return problem.New(flow.GameHasEnded, "game instance %s has ended", objects.ID(instance))
}

// checkLive refuses calls about a game that has ended.
func (d *door) checkLive(ctx context.Context, instance flow.InstanceID) error {
	return d.State.Read(ctx, func(v *cell.View) error {
		if x, _, ok := v.GameInstance(instance); ok && !x.Live() {
			return gameOver(instance)
		}
		return nil
	})
}

func (d *door) verifyPlayer(ctx context.Context, _ string, body *VerifyRequest) (*VerifyAnswer, error) {
	instance, player, err := playerSessionFor(ctx, body.GameInstanceID, body.PlayerSessionID)
	if err != nil {
		return nil, err
	}
	if err := d.checkLive(ctx, instance); err != nil {
		return nil, err
	}
	claims, ok := d.Tokens.Verify(body.ConnectionToken)
	switch {
	case !ok || claims.Session != body.PlayerSessionID:
		return nil, problem.New(flow.InvalidToken, "the connection token is not one for player session %s", body.PlayerSessionID)
	case claims.Instance != objects.ID(instance):
		return nil, problem.New(flow.WrongGame, "the connection token is for game instance %s", claims.Instance)
	}
	var m flow.Membership
	err = d.State.Read(ctx, func(v *cell.View) (err error) {
		m, err = v.VerifyPlayer(instance, player, claims.Epoch, claims.Attempt)
		return err
	})
	if err == nil && m.Player != claims.Subject {
		err = problem.New(flow.InvalidToken, "the connection token is for another player")
	}
	return &VerifyAnswer{m.Player, objects.ID(m.Instance), m.Attempt, m.Team, objects.ID(m.Party)}, err
}

var removedReasons = map[string]flow.Reason{
	"KICKED": flow.RemovedKicked, "AFK": flow.RemovedAFK, "ELIMINATED": flow.RemovedEliminated, "OTHER": flow.Removed,
}

func (d *door) removePlayers(ctx context.Context, _ string, body *RemovePlayersRequest) (*UnknownAnswer, error) {
	instance, err := principal.Of(ctx).InstanceFor(body.GameInstanceID)
	if err != nil {
		return nil, err
	}
	cmd := playerflow.RemoveMembers{Instance: instance}
	for _, x := range body.Players {
		if err := problem.CheckSize("result", x.Result, objects.PlayerAttributesMax); err != nil {
			return nil, err
		}
		cmd.Players = append(cmd.Players, playerflow.RemovedMember{
			Player: x.PlayerID, Reason: removedReasons[x.Reason], Penalise: x.Penalise, Result: x.Result.OrNothing(),
		})
	}
	err = d.State.Do(ctx, &cmd)
	return &UnknownAnswer{objects.OrEmpty(cmd.Unknown)}, err
}

func (d *door) addPlayers(ctx context.Context, _ string, body *AddPlayersRequest) (*AddPlayersAnswer, error) {
	instance, err := principal.Of(ctx).InstanceFor(body.GameInstanceID)
	if err != nil {
		return nil, err
	}
	cmd := playerflow.AddMembers{Instance: instance, ByGame: !principal.Of(ctx).Instance.IsZero()}
	for _, x := range body.Players {
		cmd.Players = append(cmd.Players, playerflow.PlannedPlayer{Player: x.PlayerID, Team: x.Team, Data: x.Data})
	}
	if err := d.State.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	answer := &AddPlayersAnswer{Failed: []FailedPlayer{}}
	for _, x := range cmd.Failed {
		answer.Failed = append(answer.Failed, FailedPlayer{x.Player, problem.Code(x.Why)})
	}
	return answer, nil
}

func (d *door) updateGame(ctx context.Context, _ string, body *UpdateRequest) (*calls.None, error) {
	instance, err := principal.Of(ctx).InstanceFor(body.GameInstanceID)
	if err == nil {
		err = problem.CheckSize("attributes", body.Attributes, objects.PartyAttributesMax)
	}
	if err == nil {
		err = checkSizes("player_attributes", body.PlayerAttributes, objects.PlayerAttributesMax)
	}
	if err != nil {
		return nil, err
	}
	return &calls.None{}, d.State.Do(ctx, &playerflow.UpdateGame{
		Instance: instance, Attributes: body.Attributes.Text(), PlayerAttributes: texts(body.PlayerAttributes), Unranked: body.UnrankedLeaveOK,
	})
}
