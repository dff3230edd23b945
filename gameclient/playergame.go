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

// EnterMatchmaking begins the search of the party, or of this player alone; for leaders. The queue is a matchmaking
// configuration; "" takes the party's preference. What follows comes as events: OnMatchFound, OnAddedToGame,
// OnHostConnectionDetailsReceived, or OnMatchmakingFailed. Directly after Login it waits until this player is online; a friend who
// is not is an error with the code MEMBER_OFFLINE.
func (p *Player) EnterMatchmaking(ctx context.Context, queue string) (*Search, error) {
	return p.EnterMatchmakingWith(ctx, queue, nil)
}

// EnterMatchmakingWith is EnterMatchmaking with attributes that count for this search only, such as the map that is wanted: a JSON
// object. They stand above those of the player and the party, and below those of the studio.
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

// onlineWithin is how long a search waits for the events of a player who has just logged in. It is asked for without them, too: the
// service knows best.
const onlineWithin = 5 * time.Second

// awaitOnline waits until the service counts this player as online, for a while.
func (p *Player) awaitOnline(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, onlineWithin)
	defer cancel()
	p.until(ctx, func() bool { return p.online || p.over != nil })
}

// LeaveMatchmaking ends the search. After a success no match follows.
func (p *Player) LeaveMatchmaking(ctx context.Context) error {
	return p.call(ctx, "Matchmaking.LeaveMatchmaking", object{}, nil)
}

// Search asks for the search as it is now. Without one the error has the code NOT_IN_MATCHMAKING.
func (p *Player) Search(ctx context.Context) (*Search, error) {
	return p.search(ctx, "GetMatchmaking", object{})
}

// AnswerMatch accepts the match that was found for a search, or declines it. Id is that of the search, which OnMatchFound has.
func (p *Player) AnswerMatch(ctx context.Context, id string, accept bool) error {
	_, err := p.search(ctx, "AcceptMatch", object{"matchmaking_id": id, "accept": accept})
	return err
}

// Queues are those that players may search in.
func (p *Player) Queues(ctx context.Context) ([]QueueInfo, error) {
	var answer struct {
		Queues []QueueInfo `json:"queues"`
	}
	err := p.call(ctx, "Matchmaking.ListQueues", object{}, &answer)
	return answer.Queues, err
}

// Game asks for the game that the player is in. Without one the error has the code NOT_IN_GAME.
func (p *Player) Game(ctx context.Context) (*Game, error) {
	return p.game(ctx, "GetGameInstance", object{})
}

// HostDetails asks how to reach the game server. A player who has lost the connection, or never made it, gets a fresh
// reservation on the seat that was kept; earlier details are void then. While the server is being sought the code is
// HOST_NOT_READY, and the details come as OnHostConnectionDetailsReceived.
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

// How long Reconnect pauses while the game server has not noticed what the player knows: at first, and then twice as long each
// time, up to what the service allows for long (one call in two seconds).
const (
	reconnectPause    = 250 * time.Millisecond
	reconnectPauseMax = 2 * time.Second
)

// Reconnect is HostDetails for a player who comes back: it waits while the game server is still being sought, and while it has
// not noticed that the earlier connection is gone (NOT_DISCONNECTED). With a connection that is alive on another device that
// is until ctx ends. Then the error is that of the last answer.
func (p *Player) Reconnect(ctx context.Context) (HostDetails, error) {
	for pause := reconnectPause; ; pause = min(2*pause, reconnectPauseMax) {
		details, err := p.HostDetails(ctx)
		refused, ok := errors.AsType[*FlowError](err)
		switch {
		case ok && (refused.Code == "HOST_NOT_READY" || refused.Code == "NOT_DISCONNECTED"):
		case ok && refused.Code == "RATE_LIMITED": // by an earlier Reconnect, say
		default:
			return details, err
		}
		if sleep(ctx, max(refused.RetryAfter, pause)) != nil {
			return HostDetails{}, err
		}
	}
}

// DeclineReconnect gives up the seat that is kept. The player is free then.
func (p *Player) DeclineReconnect(ctx context.Context) error {
	return p.leave(ctx, "DeclineReconnect")
}

// LeaveGame goes out of the game for good. Disconnect from the game server first: it keeps nobody from playing on.
func (p *Player) LeaveGame(ctx context.Context) error {
	return p.leave(ctx, "LeaveGame")
}

// CreateGameRequest is a game of a player's own. The zero value is as the service has it.
type CreateGameRequest struct {
	Attributes json.RawMessage `json:"attributes,omitempty"` // a JSON object, which all in the game see
	MaxPlayers int             `json:"max_players,omitempty"`
}

// CreateGame makes a game without matchmaking, where the service allows that. Friends come with JoinGame and its id; the details of
// the server come as an event.
func (p *Player) CreateGame(ctx context.Context, r CreateGameRequest) (*Game, error) {
	return p.game(ctx, "CreateGameInstance", r)
}

// JoinGame takes a free seat in a game that runs, where the service allows that. A code is for the studio's backend, which says what
// it means; "" is none.
func (p *Player) JoinGame(ctx context.Context, gameInstance, code string) (*Game, error) {
	body := object{"game_instance_id": gameInstance}
	if code != "" {
		body["code"] = code
	}
	return p.game(ctx, "JoinGameInstance", body)
}

// UpdateGame replaces the attributes of the game that the player is in, where the studio's backend allows that.
func (p *Player) UpdateGame(ctx context.Context, attributes json.RawMessage) (*Game, error) {
	return p.game(ctx, "UpdateGameInstance", object{"attributes": attributes})
}

// game makes a call that answers with the game as it is now.
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

// currentGame names the game that the player is in, for all that this client knows.
func (p *Player) currentGame(call string) (object, error) {
	f := p.Flow()
	if f.Keys.GameInstanceID == "" {
		return nil, &FlowError{
			Call: "GameInstance." + call, Status: 409, Code: "NOT_IN_GAME", Message: "the player is in no game", Action: ActionSync, Flow: &f,
		}
	}
	return object{"game_instance_id": f.Keys.GameInstanceID}, nil
}
