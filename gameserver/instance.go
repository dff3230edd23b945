package gameserver

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// GameInstance is the game of this process in Muster's player flow. A game server need not use it, because players of player flow
// connect with player sessions like all others. With it a server verifies players, distinguishes a quit from a lost connection,
// removes, releases and adds players, fills free seats, reports results, and gets notices of what its players do elsewhere.
//
// A call waits 30 s for its answer, and is sent up to four times in all; the service executes it once. Errors are *Error, with a
// *FlowError if the service refused the call: ErrNoFlow if the game ended long ago, ErrUnauthorized, ErrRefused or ErrUnavailable.
// The methods may be called from any goroutine.
type GameInstance struct {
	ID string // of the game, "gi-…"

	server *Server
	base   url.URL // of the calls, "…/playerflow/v1/partner/"
	client *http.Client
	token  string
}

// GameInstanceOptions are the options of a GameInstance.
type GameInstanceOptions struct {
	// Endpoint is the URL of the service's listener for trusted servers (--partner-listen), "https://host:port". With --dev, it is that of
	// the only port.
	Endpoint string

	HTTPClient *http.Client // nil: http.DefaultClient
}

// GameInstance exchanges the auth token of this process for a token of its game. It fails with an *OptionError for a wrong Endpoint, with
// ErrNoSession before the process has a game session, with ErrNoFlow if that session does not belong to player flow, and with
// ErrUnsupported if the process has no auth token because it signs.
func (s *Server) GameInstance(ctx context.Context, o GameInstanceOptions) (*GameInstance, error) {
	const call = "GameInstance"
	u, err := url.Parse(o.Endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, &OptionError{"Endpoint", o.Endpoint, "http://host:port or https://host:port, the service's listener for trusted servers"}
	}
	hosted, ok := s.Session()
	switch {
	case !ok:
		return nil, &Error{Call: call, Kind: ErrNoSession}
	case s.options.AuthToken == "":
		return nil, &Error{call, ErrUnsupported, &OptionError{"AuthToken", "", "a token from get-compute-auth-token: a process that signs has none to exchange"}}
	}
	g := &GameInstance{server: s, base: *u.JoinPath("playerflow", "v1", "partner"), client: cmp.Or(o.HTTPClient, http.DefaultClient)}
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

// StartData is the service's state of a game.
type StartData struct {
	GameInstanceID string           `json:"game_instance_id"` // "gi-…"
	Status         string           `json:"status"`           // PENDING, ACTIVE, ENDING or ENDED
	Reconnect      string           `json:"reconnect"`        // OFF, OPTIONAL or REQUIRED: whether a player may or must return
	Players        []InstancePlayer `json:"players"`          // who belong to the game now
	Attributes     json.RawMessage  `json:"attributes"`       // a JSON object
}

// InstancePlayer is a player of a game. In notices, only the ids are set.
type InstancePlayer struct {
	PlayerID   string          `json:"player_id"`  // 1 to 128 characters
	PartyID    string          `json:"party_id"`   // "pty-…"; empty without a party
	Team       string          `json:"team"`       // in the match; may be empty
	Status     string          `json:"status"`     // PENDING, RESERVED, NO_SHOW, ACTIVE or DISCONNECTED
	Attributes json.RawMessage `json:"attributes"` // a JSON object
}

// StartData requests the state of the game and its players.
func (g *GameInstance) StartData(ctx context.Context) (StartData, error) {
	return ask[StartData](ctx, g, "Game.GetStartData", nothing{})
}

// Ready reports that players may connect. The service waits for it only with the option manualReady.
func (g *GameInstance) Ready(ctx context.Context) error {
	return g.call(ctx, "Game.Ready", nothing{}, nil)
}

// KeepAlive reports that the game continues. With the option enableKeepAlive, the service ends a game that misses several reports (by
// default four, 15 s apart).
func (g *GameInstance) KeepAlive(ctx context.Context) error {
	return g.call(ctx, "Game.KeepAlive", nothing{}, nil)
}

// GameUpdate is a change of the game. Nil fields leave it unchanged.
type GameUpdate struct {
	Attributes       json.RawMessage            `json:"attributes,omitempty"`        // a JSON object, which all players see
	PlayerAttributes map[string]json.RawMessage `json:"player_attributes,omitempty"` // JSON objects of single players, by player id
	UnrankedLeaveOK  *bool                      `json:"unranked_leave_ok,omitempty"` // true: leaving the game is no longer an offence
}

// Update changes the game and notifies its players.
func (g *GameInstance) Update(ctx context.Context, u GameUpdate) error {
	return g.call(ctx, "Game.Update", u, nil)
}

// GameResult is the result of a game.
type GameResult struct {
	Result  json.RawMessage            `json:"result,omitempty"`  // a JSON object for all players
	Results map[string]json.RawMessage `json:"results,omitempty"` // JSON objects for single players, by player id
}

// End ends the game for all its players, who may join other games at once. The server process continues; Server.End ends
// it. It is not an error to end a game twice.
func (g *GameInstance) End(ctx context.Context, r GameResult) error {
	return g.call(ctx, "Game.EndGame", r, nil)
}

// GameSearch is a game's search for players.
type GameSearch struct {
	Queue string `json:"queue,omitempty"` // a matchmaking configuration; empty: the one of the game's match
	Seats int    `json:"slots,omitempty"` // how many players at most, up to 1,000; 0: one for each free seat
	// Teams are the teams of players without a team of the match, or with another one now, by player id. They are not needed if the rule set
	// has a single team.
	Teams map[string]string `json:"teams,omitempty"`
}

// SearchTicket is the search of a game.
type SearchTicket struct {
	ID      string    `json:"matchmaking_id"` // of the search
	Queue   string    `json:"queue"`          // the matchmaking configuration
	Expires time.Time `json:"expires_at"`     // when the search ends
}

// EnterMatchmaking searches for players for the free seats of the game. They connect like all others. A second search replaces
// the first. For a game that no match created, the search must name the queue and the teams.
func (g *GameInstance) EnterMatchmaking(ctx context.Context, search GameSearch) (SearchTicket, error) {
	return ask[SearchTicket](ctx, g, "Game.EnterMatchmaking", search)
}

// LeaveMatchmaking ends the search and returns its id; empty if there was none.
func (g *GameInstance) LeaveMatchmaking(ctx context.Context) (matchmakingID string, err error) {
	answer, err := ask[SearchTicket](ctx, g, "Game.LeaveMatchmaking", nothing{})
	return answer.ID, err
}

type nothing struct{}

// address returns the URL of a call or of the stream.
func (g *GameInstance) address(name string) *url.URL {
	u := g.base
	u.Path = strings.TrimSuffix(u.Path, "/") + "/" + name
	return &u
}
