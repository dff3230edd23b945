package gameserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// GameInstance is what Muster's player flow knows of the game that this process hosts, and how the game server takes part in
// it. None of it has to be used: players of player flow come with player sessions as all others do. It is for a game server
// that wants to check who a player is, to tell a quit from a lost connection, to remove, release and add players, to fill
// free seats, to report results, and to hear what its players do elsewhere.
//
// Calls that get no answer are made again, and are carried out once. Errors are *Error; what the service said is the
// *FlowError in it. The methods may be called from any goroutine.
type GameInstance struct {
	ID string // "gi-…"

	server *Server
	base   url.URL // of the calls, "…/playerflow/v1/partner/"
	client *http.Client
	token  string
}

// GameInstanceOptions say where player flow is.
type GameInstanceOptions struct {
	// Endpoint is the listener for the studio's servers, "https://host:port": the service's --partner-listen; the one port with
	// --dev.
	Endpoint string

	HTTPClient *http.Client // nil: http.DefaultClient
}

// GameInstance shows the service the auth token of this process, and gets the token for the calls about its game. It fails with
// ErrNoSession before a game session has come, with ErrNoFlow when that is not one of player flow, and with ErrUnsupported
// when the process has no auth token because it signs.
func (s *Server) GameInstance(ctx context.Context, o GameInstanceOptions) (*GameInstance, error) {
	const call = "GameInstance"
	u, err := url.Parse(o.Endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, &OptionError{"Endpoint", o.Endpoint, "http://host:port or https://host:port, the service's address for the studio's servers"}
	}
	hosted, ok := s.Session()
	switch {
	case !ok:
		return nil, &Error{Call: call, Kind: ErrNoSession}
	case s.options.AuthToken == "":
		return nil, &Error{call, ErrUnsupported, &OptionError{"AuthToken", "", "a token from get-compute-auth-token: a process that signs has none to exchange"}}
	}
	g := &GameInstance{server: s, base: *u.JoinPath("playerflow", "v1", "partner"), client: o.HTTPClient}
	if g.client == nil {
		g.client = http.DefaultClient
	}
	var answer struct {
		Token string `json:"partner_token"`
		ID    string `json:"game_instance_id"`
	}
	err = g.call(ctx, "Server.Exchange", map[string]any{
		"auth_token": s.options.AuthToken, "process_id": s.options.ProcessID, "game_session_id": hosted.ID,
	}, &answer)
	if err != nil {
		return nil, err
	}
	g.ID, g.token = answer.ID, answer.Token
	return g, nil
}

// StartData is a game as the service knows it.
type StartData struct {
	GameInstanceID string           `json:"game_instance_id"`
	Status         string           `json:"status"`    // PENDING, ACTIVE, ENDING or ENDED
	Reconnect      string           `json:"reconnect"` // OFF, OPTIONAL or REQUIRED
	Players        []InstancePlayer `json:"players"`
	Attributes     json.RawMessage  `json:"attributes"` // a JSON object
}

// InstancePlayer is one of the players of a game. Notices say no more than the identifiers.
type InstancePlayer struct {
	PlayerID   string          `json:"player_id"`
	PartyID    string          `json:"party_id"`
	Team       string          `json:"team"`
	Status     string          `json:"status"`     // PENDING, RESERVED, NO_SHOW, ACTIVE or DISCONNECTED
	Attributes json.RawMessage `json:"attributes"` // a JSON object
}

// StartData says who belongs to the game.
func (g *GameInstance) StartData(ctx context.Context) (StartData, error) {
	return ask[StartData](ctx, g, "Game.GetStartData", nothing{})
}

// Ready says that the game takes players: the service waits for it with --player-manual-ready alone.
func (g *GameInstance) Ready(ctx context.Context) error {
	return g.call(ctx, "Game.Ready", nothing{}, nil)
}

// KeepAlive says that the game goes on. Where the service is told to expect it, a game that falls silent is ended.
func (g *GameInstance) KeepAlive(ctx context.Context) error {
	return g.call(ctx, "Game.KeepAlive", nothing{}, nil)
}

// GameUpdate changes what the game server says about the game. What is nil stays as it is.
type GameUpdate struct {
	Attributes       json.RawMessage            `json:"attributes,omitempty"` // a JSON object, which all players see
	PlayerAttributes map[string]json.RawMessage `json:"player_attributes,omitempty"`
	UnrankedLeaveOK  *bool                      `json:"unranked_leave_ok,omitempty"` // leaving is no offence from now on
}

// Update tells all players of the game what has changed in it.
func (g *GameInstance) Update(ctx context.Context, u GameUpdate) error {
	return g.call(ctx, "Game.Update", u, nil)
}

// GameResult is how a game went.
type GameResult struct {
	Result  json.RawMessage            `json:"result,omitempty"`  // a JSON object
	Results map[string]json.RawMessage `json:"results,omitempty"` // of single players, by their ids
}

// End ends the game for all its players, who are free for the next one at once. The server process lives on until it
// ends by itself; Server.End does that. Ending twice is no error.
func (g *GameInstance) End(ctx context.Context, r GameResult) error {
	return g.call(ctx, "Game.EndGame", r, nil)
}

// GameSearch is a wish for players from matchmaking.
type GameSearch struct {
	Queue string `json:"queue,omitempty"` // a matchmaking configuration; empty: the one that the game came of
	Seats int    `json:"slots,omitempty"` // how many players at most; 0: as many as there is room for
	// Teams of players, by their ids: of those whom no match has put into one, or who are in another one by now. Where the rule
	// set has one team nobody needs to be told.
	Teams map[string]string `json:"teams,omitempty"`
}

// SearchTicket is the search of a game.
type SearchTicket struct {
	ID      string    `json:"matchmaking_id"`
	Queue   string    `json:"queue"`
	Expires time.Time `json:"expires_at"`
}

// EnterMatchmaking looks for players for the free seats of the game. They come as all others do; a second search takes the place of
// the first. A game that came of no match says in which queue, and who is in which team.
func (g *GameInstance) EnterMatchmaking(ctx context.Context, search GameSearch) (SearchTicket, error) {
	return ask[SearchTicket](ctx, g, "Game.EnterMatchmaking", search)
}

// LeaveMatchmaking ends the search, and tells which it was; empty when there was none.
func (g *GameInstance) LeaveMatchmaking(ctx context.Context) (matchmakingID string, err error) {
	answer, err := ask[SearchTicket](ctx, g, "Game.LeaveMatchmaking", nothing{})
	return answer.ID, err
}

type nothing struct{}

// address is where a call or the stream goes.
func (g *GameInstance) address(name string) *url.URL {
	u := g.base
	u.Path = strings.TrimSuffix(u.Path, "/") + "/" + name
	return &u
}
