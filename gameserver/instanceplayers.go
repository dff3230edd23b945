package gameserver

import (
	"context"
	"encoding/json"
)

// VerifiedPlayer is the player of a client.
type VerifiedPlayer struct {
	PlayerID string `json:"player_id"` // 1 to 128 characters
	PartyID  string `json:"party_id"`  // "pty-…"; empty without a party
	Team     string `json:"team"`      // in the match; may be empty
	Attempt  int    `json:"attempt"`   // 1, and one more with each return
}

// Verify returns the player to whom a player session and a connection token belong. It does not accept the player;
// ValidatePlayerJoin or AcceptPlayer does. It fails with ErrRefused and one of the codes INVALID_TOKEN (they do not belong together), WRONG_GAME
// and SUPERSEDED (the player has newer ones).
func (g *GameInstance) Verify(ctx context.Context, playerSessionID, connectionToken string) (VerifiedPlayer, error) {
	return ask[VerifiedPlayer](ctx, g, "Game.VerifyPlayer", map[string]any{"player_session_id": playerSessionID, "connection_token": connectionToken})
}

// Disconnect is the reason why a player's connection has closed.
type Disconnect string

// The reasons.
const (
	ConnectionLost Disconnect = "CONNECTION_LOST" // the seat is kept if the game allows a return
	Quit           Disconnect = "QUIT"            // the player has left the game
)

// PlayerDisconnected reports why the connection of a player has closed. HandlePlayerLeave and RemovePlayer cannot give a reason and
// mean ConnectionLost. It is not an error to call one of them afterwards or before; after ValidatePlayerJoin, HandlePlayerLeave is
// required. A stale report, after the player has already returned with a newer player session, has no effect.
func (g *GameInstance) PlayerDisconnected(ctx context.Context, playerSessionID string, why Disconnect) (stale bool, err error) {
	answer, err := ask[struct {
		Stale bool `json:"stale"`
	}](ctx, g, "Game.PlayerDisconnected", map[string]any{"player_session_id": playerSessionID, "reason": why})
	return answer.Stale, err
}

// RemovalReason is the reason why a player is removed from a game.
type RemovalReason string

// The reasons.
const (
	RemovedKicked     RemovalReason = "KICKED"     // by a vote or an administrator
	RemovedAFK        RemovalReason = "AFK"        // the player was inactive
	RemovedEliminated RemovalReason = "ELIMINATED" // the player has lost
	RemovedOther      RemovalReason = "OTHER"      // anything else
)

// Removal removes a player from a game that continues.
type Removal struct {
	PlayerID string          `json:"player_id"`          // a player of the game
	Reason   RemovalReason   `json:"reason"`             // required
	Penalise bool            `json:"penalise,omitempty"` // counts as an offence
	Result   json.RawMessage `json:"result,omitempty"`   // a JSON object for the player
}

// RemovePlayers removes up to 200 players from the game for good. Close their connections, too. It returns the ids of players who were not
// in the game.
func (g *GameInstance) RemovePlayers(ctx context.Context, players ...Removal) (unknown []string, err error) {
	answer, err := ask[unknownPlayers](ctx, g, "Game.RemovePlayers", map[string]any{"players": players})
	return answer.Unknown, err
}

// ReleasePlayers ends the part of up to 200 players in the game, never with a penalty. In a REQUIRED game it is the only way out for a player
// before the end. The result is a JSON object, or nil. It returns the ids of players who were not in the game.
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

// AddedPlayer is a player to add to the game.
type AddedPlayer struct {
	PlayerID            string         `json:"player_id"`             // 1 to 128 characters
	Team                string         `json:"team,omitempty"`        // up to 128 characters
	Data                string         `json:"player_data,omitempty"` // of the player session, up to 2,048 characters
	LatencyMilliseconds map[string]int `json:"latency_ms,omitempty"`  // round-trip times by location
}

// NotAdded is a player who could not be added.
type NotAdded struct {
	PlayerID string `json:"player_id"` // as in the call
	Code     string `json:"code"`      // the reason, such as PLAYER_IN_GAME, IN_MATCHMAKING or GAME_FULL
}

// AddPlayers adds up to 200 players who were in this game before and are now idle or in a party. Each of them gets the
// connection details. It returns the players who could not be added. Players who were never in the game get the code JOIN_NOT_ALLOWED,
// because only the studio's backend may add those.
func (g *GameInstance) AddPlayers(ctx context.Context, players ...AddedPlayer) (failed []NotAdded, err error) {
	answer, err := ask[struct {
		Failed []NotAdded `json:"failed"`
	}](ctx, g, "Game.AddPlayers", map[string]any{"players": players})
	return answer.Failed, err
}
