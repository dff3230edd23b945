// Package arena is a small multiplayer game, complete enough to show what a game does with a game session service:
// players walk on a grid, talk, and race for coins, round after round. A player who has left may return to the old score.
//
// The rules are in world.go, the server's connections in room.go, a client's in client.go; folder arena-server is the
// dedicated server, arena-server-bare the same without a library, arena-client the program for players.
//
// Client and server send each other JSON objects, one a line, over TCP. The first line of a client is a join with
// the player session id that it got from the service; the answer is a welcome or a refusal.
package arena

// Kind is the kind of a message.
type Kind string

// Messages of clients.
const (
	Join  Kind = "join"  // PlayerSession, Name
	Move  Kind = "move"  // Direction
	Say   Kind = "say"   // Text
	Leave Kind = "leave" // the server then closes the connection
)

// Messages of the server.
const (
	Welcome Kind = "welcome" // Name, Width, Height, Coin, Players, Round: everything as it is now
	Refused Kind = "refused" // Text says why; Retry whether the same player session may try again
	Joined  Kind = "joined"  // Player
	Moved   Kind = "moved"   // Player, and Coin when this move took the last one
	Said    Kind = "said"    // Name, Text
	Left    Kind = "left"    // Name
	Round   Kind = "round"   // Name has won one; number Round begins, with Players and Coin as they are now
	Over    Kind = "over"    // Text says why; nothing comes after it
)

// Direction is one step on the grid; north is towards row 0, as players see it.
type Direction string

// The four directions.
const (
	North Direction = "north"
	South Direction = "south"
	West  Direction = "west"
	East  Direction = "east"
)

// Message is one line on the wire. Its Kind decides which fields are set.
type Message struct {
	Kind          Kind      `json:"kind"`
	PlayerSession string    `json:"playerSession,omitempty"`
	Name          string    `json:"name,omitempty"`
	Direction     Direction `json:"direction,omitempty"`
	Text          string    `json:"text,omitempty"`
	Retry         bool      `json:"retry,omitempty"`
	Width         int       `json:"width,omitempty"`
	Height        int       `json:"height,omitempty"`
	Coin          *Cell     `json:"coin,omitempty"`
	Player        *Player   `json:"player,omitempty"`
	Players       []Player  `json:"players,omitempty"`
	Round         int       `json:"round,omitempty"`
}

// Cell is a place on the grid, counted from the upper left corner.
type Cell struct {
	X int `json:"x"`
	Y int `json:"y"`
}

// Player is a player as all others see it.
type Player struct {
	Name  string `json:"name"`
	At    Cell   `json:"at"`
	Coins int    `json:"coins"`          // of this round
	Wins  int    `json:"wins,omitempty"` // rounds won
}
