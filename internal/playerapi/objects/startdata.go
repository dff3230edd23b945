package objects

import (
	"github.com/musterhq/muster/internal/domain/flow"
)

// StartDataAnswer is what a game server needs to start a game.
type StartDataAnswer struct {
	GameInstanceID string        `json:"game_instance_id"`
	Status         string        `json:"status" enum:"PENDING,ACTIVE,ENDING,ENDED"`
	Reconnect      string        `json:"reconnect" enum:"OFF,OPTIONAL,REQUIRED"`
	Players        []StartPlayer `json:"players"`
	Attributes     Object        `json:"attributes"`
}

// StartPlayer is one of the game's players.
type StartPlayer struct {
	PlayerID   string `json:"player_id"`
	PartyID    string `json:"party_id,omitempty"`
	Team       string `json:"team,omitempty"`
	Status     string `json:"status" enum:"PENDING,RESERVED,NO_SHOW,ACTIVE,DISCONNECTED"`
	Attributes Object `json:"attributes"`
}

// StartDataOf describes a game instance for its server.
func StartDataOf(x *flow.Instance, members []flow.Membership) *StartDataAnswer {
	answer := &StartDataAnswer{
		GameInstanceID: ID(x.ID), Status: x.Status.String(), Reconnect: x.Rules.Reconnect.String(), Attributes: Object(x.Attributes),
		Players: []StartPlayer{},
	}
	for _, m := range members {
		answer.Players = append(answer.Players, StartPlayer{m.Player, ID(m.Party), m.Team, m.Status.String(), Object(m.Attributes)})
	}
	return answer
}
