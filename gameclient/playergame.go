package gameclient

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

func (p *Player) search(ctx context.Context, name string, body any) (*Search, error) {
	var answer struct {
		Search *Search `json:"ticket"`
	}
	err := p.call(ctx, "Matchmaking."+name, body, &answer)
	return answer.Search, err
}

// EnterMatchmaking starts the search of the party, or of this player alone. Only leaders may call it. The queue is the name of a matchmaking
// configuration, up to 128 characters; "" means the party's preference. Events report the result: OnMatchFound, OnAddedToGame,
// OnHostConnectionDetailsReceived, or OnMatchmakingFailed. Right after Login it waits up to 5 s until this player is online.
//
// Codes of refusals are NOT_LEADER, PLAYERS_NOT_READY, MEMBER_OFFLINE, PARTY_TOO_LARGE, PARTY_VERSION_MISMATCH, PLAYER_IN_GAME,
// QUEUE_NOT_FOUND, QUEUE_CLOSED and MATCHMAKING_LOCKED, among others.
func (p *Player) EnterMatchmaking(ctx context.Context, queue string) (*Search, error) {
	return p.EnterMatchmakingWith(ctx, queue, nil)
}

// EnterMatchmakingWith is EnterMatchmaking with attributes for this search only, such as a preferred map: a JSON
// object. They override the attributes of the player and the party, and the studio's attributes override them.
func (p *Player) EnterMatchmakingWith(ctx context.Context, queue string, attributes json.RawMessage) (*Search, error) {
	body := object{}
	if queue != "" {
		body["queue"] = queue
	}
	if attributes != nil {
		body["attributes"] = attributes
	}
	p.awaitOnline(ctx)
	return p.search(ctx, "EnterMatchmaking", body)
}

// onlineWithin is how long a search waits for the event stream after a login. It is sent afterwards in any case, because the service
// decides.
const onlineWithin = 5 * time.Second

// awaitOnline waits up to onlineWithin until the service considers this player online.
func (p *Player) awaitOnline(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, onlineWithin)
	defer cancel()
	p.until(ctx, func() bool { return p.online || p.over != nil })
}

// LeaveMatchmaking ends the search. After it has succeeded, no match follows. Codes of refusals are NOT_IN_MATCHMAKING and ALREADY_MATCHED.
func (p *Player) LeaveMatchmaking(ctx context.Context) error {
	return p.call(ctx, "Matchmaking.LeaveMatchmaking", object{}, nil)
}

// Search requests the search as it is now. Without one, the error has the code NOT_IN_MATCHMAKING.
func (p *Player) Search(ctx context.Context) (*Search, error) {
	return p.search(ctx, "GetMatchmaking", object{})
}

// AnswerMatch accepts or declines the match that was found for a search. The id is the search's: Event.SearchID of OnMatchFound. Without
// a match that waits for an answer, the error has the code ACCEPTANCE_NOT_OPEN.
func (p *Player) AnswerMatch(ctx context.Context, id string, accept bool) error {
	_, err := p.search(ctx, "AcceptMatch", object{"matchmaking_id": id, "accept": accept})
	return err
}

// Queues requests the queues in which players may search.
func (p *Player) Queues(ctx context.Context) ([]QueueInfo, error) {
	var answer struct {
		Queues []QueueInfo `json:"queues"`
	}
	err := p.call(ctx, "Matchmaking.ListQueues", object{}, &answer)
	return answer.Queues, err
}

// Game requests the game that the player is in. Without one, the error has the code NOT_IN_GAME.
func (p *Player) Game(ctx context.Context) (*Game, error) {
	return p.game(ctx, "GetGameInstance", object{})
}

// HostDetails requests the address of the game server. A player who has lost the connection, or has not connected yet, gets a new
// reservation of the same seat, and earlier details become invalid. While the service looks for a game server, the error has the code
// HOST_NOT_READY, and the details will come as OnHostConnectionDetailsReceived. Other codes are NOT_IN_GAME, NOT_DISCONNECTED and GAME_ENDED.
func (p *Player) HostDetails(ctx context.Context) (HostDetails, error) {
	game, err := p.currentGame("GetHostConnectionDetails")
	if err != nil {
		return HostDetails{}, err
	}
	var answer struct {
		Host HostDetails `json:"host"`
	}
	err = p.call(ctx, "GameInstance.GetHostConnectionDetails", game, &answer)
	return answer.Host, err
}

// The pauses of Reconnect while the game server has not noticed the lost connection: the first one, doubled each time up to the
// rate that the service allows in the long run (one call in two seconds).
const (
	reconnectPause    = 250 * time.Millisecond
	reconnectPauseMax = 2 * time.Second
)

// Reconnect is HostDetails for a player who returns to a game. It waits while the service looks for a game server (HOST_NOT_READY), and
// until the game server has noticed the loss of the earlier connection (NOT_DISCONNECTED). If that connection is alive, on another
// device for example, Reconnect waits until ctx ends, and returns the error of the last answer.
func (p *Player) Reconnect(ctx context.Context) (HostDetails, error) {
	for pause := reconnectPause; ; pause = min(2*pause, reconnectPauseMax) {
		details, err := p.HostDetails(ctx)
		refused, ok := errors.AsType[*FlowError](err)
		switch {
		case ok && (refused.Code == "HOST_NOT_READY" || refused.Code == "NOT_DISCONNECTED"):
		case ok && refused.Code == "RATE_LIMITED": // because of an earlier Reconnect, for example
		default:
			return details, err
		}
		if sleep(ctx, max(refused.RetryAfter, pause)) != nil {
			return HostDetails{}, err
		}
	}
}

// DeclineReconnect gives up the kept seat. The player may then search or join another game. A REQUIRED game refuses it with the code
// CANNOT_DECLINE_RECONNECT.
func (p *Player) DeclineReconnect(ctx context.Context) error {
	return p.leave(ctx, "DeclineReconnect")
}

// LeaveGame leaves the game for good. Disconnect from the game server first, because LeaveGame does not close that connection. The code of a
// refusal is LEAVE_NOT_ALLOWED.
func (p *Player) LeaveGame(ctx context.Context) error {
	return p.leave(ctx, "LeaveGame")
}

// CreateGameRequest describes a game that a player creates. The zero value uses the service's defaults.
type CreateGameRequest struct {
	Attributes json.RawMessage `json:"attributes,omitempty"`  // a JSON object, which all players of the game see
	MaxPlayers int             `json:"max_players,omitempty"` // up to the service's maximum; 0 means the maximum
}

// CreateGame creates a game without matchmaking, if the service allows that (directCreate). Friends join with JoinGame and the game's id.
// The connection details come as an event.
func (p *Player) CreateGame(ctx context.Context, r CreateGameRequest) (*Game, error) {
	return p.game(ctx, "CreateGameInstance", r)
}

// JoinGame takes a free seat in a running game, if the service allows that (directJoin). The code, up to 64 characters, is for the
// studio's backend; "" means none. Codes of refusals are GAME_INSTANCE_NOT_FOUND, GAME_FULL, GAME_ENDED and JOIN_NOT_ALLOWED.
func (p *Player) JoinGame(ctx context.Context, gameInstance, code string) (*Game, error) {
	body := object{"game_instance_id": gameInstance}
	if code != "" {
		body["code"] = code
	}
	return p.game(ctx, "JoinGameInstance", body)
}

// UpdateGame replaces the attributes of the player's game with a JSON object, if the studio's backend allows that.
func (p *Player) UpdateGame(ctx context.Context, attributes json.RawMessage) (*Game, error) {
	return p.game(ctx, "UpdateGameInstance", object{"attributes": attributes})
}

// game makes a call whose answer contains the game.
func (p *Player) game(ctx context.Context, name string, body any) (*Game, error) {
	var answer struct {
		Game *Game `json:"game_instance"`
	}
	err := p.call(ctx, "GameInstance."+name, body, &answer)
	return answer.Game, err
}

func (p *Player) leave(ctx context.Context, name string) error {
	game, err := p.currentGame(name)
	if err != nil {
		return err
	}
	return p.call(ctx, "GameInstance."+name, game, nil)
}

// currentGame returns the id of the player's game, as far as this client knows.
func (p *Player) currentGame(call string) (object, error) {
	f := p.Flow()
	if f.Keys.GameInstanceID == "" {
		return nil, &FlowError{
			Call: "GameInstance." + call, Status: 409, Code: "NOT_IN_GAME", Message: "the player is in no game", Action: ActionSync, Flow: &f,
		}
	}
	return object{"game_instance_id": f.Keys.GameInstanceID}, nil
}
