package gameserver

import (
	"context"
	"encoding/json"
)

// VerifiedPlayer is who a client is.
type VerifiedPlayer struct {
	PlayerID string `json:"player_id"`
	PartyID  string `json:"party_id"`
	Team     string `json:"team"`
	Attempt  int    `json:"attempt"` // 1; more after each return
}

// Verify says whose player session and connection token a client shows. It lets nobody in: ValidatePlayerJoin or AcceptPlayer
// does. A client that shows what does not belong together, or was superseded, is ErrRefused, with INVALID_TOKEN, WRONG_GAME or
// SUPERSEDED as the code.
func (g *GameInstance) Verify(ctx context.Context, playerSessionID, connectionToken string) (VerifiedPlayer, error) {
	return ask[VerifiedPlayer](ctx, g, "Game.VerifyPlayer", map[string]any{"player_session_id": playerSessionID, "connection_token": connectionToken})
}

// Disconnect is why a player's connection is closed.
type Disconnect string

// The reasons.
const (
	ConnectionLost Disconnect = "CONNECTION_LOST" // the seat is kept for a return, where the game allows one
	Quit           Disconnect = "QUIT"            // the player has left the game
)

// PlayerDisconnected says why the connection of a player was closed. HandlePlayerLeave and RemovePlayer, which cannot say it,
// mean ConnectionLost; to call one of them afterwards is no error, and needed where ValidatePlayerJoin was. It is stale, and
// nothing is done, when the player has come back with a newer player session already.
func (g *GameInstance) PlayerDisconnected(ctx context.Context, playerSessionID string, why Disconnect) (stale bool, err error) {
	answer, err := ask[struct {
		Stale bool `json:"stale"`
	}](ctx, g, "Game.PlayerDisconnected", map[string]any{"player_session_id": playerSessionID, "reason": why})
	return answer.Stale, err
}

// RemovalReason is why a player is removed from a game.
type RemovalReason string

// The reasons.
const (
	RemovedKicked     RemovalReason = "KICKED"
	RemovedAFK        RemovalReason = "AFK"
	RemovedEliminated RemovalReason = "ELIMINATED"
	RemovedOther      RemovalReason = "OTHER"
)

// Removal takes a player out of a game that goes on.
type Removal struct {
	PlayerID string          `json:"player_id"`
	Reason   RemovalReason   `json:"reason"`
	Penalise bool            `json:"penalise,omitempty"` // counts as an offence
	Result   json.RawMessage `json:"result,omitempty"`   // a JSON object
}

// RemovePlayers takes up to 200 players out of the game for good. Close their connections too. It lists those who were not
// in the game.
func (g *GameInstance) RemovePlayers(ctx context.Context, players ...Removal) (unknown []string, err error) {
	answer, err := ask[unknownPlayers](ctx, g, "Game.RemovePlayers", map[string]any{"players": players})
	return answer.Unknown, err
}

// ReleasePlayers lets up to 200 players go who have done their part, never with a penalty; the way out of a game to which they would
// have to return. The result is a JSON object, or nil. It lists those who were not in the game.
func (g *GameInstance) ReleasePlayers(ctx context.Context, result json.RawMessage, playerIDs ...string) (unknown []string, err error) {
	body := map[string]any{"player_ids": playerIDs}
	if result != nil {
		body["result"] = result
	}
	answer, err := ask[unknownPlayers](ctx, g, "Game.ReleasePlayers", body)
	return answer.Unknown, err
}

type unknownPlayers struct {
	Unknown []string `json:"unknown"`
}

// AddedPlayer is somebody who shall come into the game.
type AddedPlayer struct {
	PlayerID            string         `json:"player_id"`
	Team                string         `json:"team,omitempty"`
	Data                string         `json:"player_data,omitempty"` // for the player session
	LatencyMilliseconds map[string]int `json:"latency_ms,omitempty"`  // by location
}

// NotAdded is a player who could not be added, and why: a code such as PLAYER_IN_GAME, IN_MATCHMAKING or GAME_FULL.
type NotAdded struct {
	PlayerID string `json:"player_id"`
	Code     string `json:"code"`
}

// AddPlayers seats up to 200 players again who were in this game before and are idle or in a party now; each of them is told
// where to connect. It lists those who could not be seated: players who were never in the game get JOIN_NOT_ALLOWED, since only
// the studio's backend may add those.
func (g *GameInstance) AddPlayers(ctx context.Context, players ...AddedPlayer) (failed []NotAdded, err error) {
	answer, err := ask[struct {
		Failed []NotAdded `json:"failed"`
	}](ctx, g, "Game.AddPlayers", map[string]any{"players": players})
	return answer.Failed, err
}
