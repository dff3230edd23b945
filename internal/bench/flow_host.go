package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/linkclient"
)

// flowQueue is the matchmaking configuration for searches; it never finds a match.
const flowQueue = "flow"

const nobodySuits = `{"ruleLanguageVersion": "1.0", "playerAttributes": [{"name": "skill", "type": "number", "default": 1}],
	"teams": [{"name": "a", "minPlayers": 2, "maxPlayers": 2}, {"name": "b", "minPlayers": 2, "maxPlayers": 2}],
	"rules": [{"name": "Never", "type": "comparison", "measurements": ["max(flatten(teams[*].players.attributes[skill]))"],
		"referenceValue": 1000000, "operation": ">="}]}`

// flowHost has the matchmaking configuration for the players' searches, and their game servers.
type flowHost struct {
	addr    string
	hall    *hall
	crowd   *crowd
	started atomic.Int64 // game sessions that are active
	failed  atomic.Pointer[error]
}

// setUpFlow makes the fleet, the game session queue and the matchmaking configuration.
func (b *bench) setUpFlow(ctx context.Context, s *server) (*flowHost, error) {
	c, err := dial(ctx, s.addr, awsJSON, s.key)
	if err != nil {
		return nil, err
	}
	defer c.close()
	h, err := b.setUp(c)
	if err != nil {
		return nil, err
	}
	if err := h.matchmaking(c, flowQueue, nobodySuits); err != nil {
		return nil, err
	}
	x := &flowHost{addr: s.addr, hall: h}
	h.onGame = x.host
	return x, nil
}

// matchmaking makes a game session queue for the fleet, a rule set, and a configuration for player flow, all of one name.
func (h *hall) matchmaking(c *conn, name, rules string) error {
	made, err := callJSON[struct {
		GameSessionQueue struct{ GameSessionQueueArn string }
	}](c, "CreateGameSessionQueue", map[string]any{
		"Name": name, "Destinations": []map[string]string{{"DestinationArn": "arn:aws:gamelift:" + region + "::fleet/" + h.fleet}},
	})
	if err != nil {
		return err
	}
	if _, err := callJSON[struct{}](c, "CreateMatchmakingRuleSet", map[string]any{"Name": name, "RuleSetBody": rules}); err != nil {
		return err
	}
	_, err = callJSON[struct{}](c, "CreateMatchmakingConfiguration", map[string]any{
		"Name": name, "RuleSetName": name, "AcceptanceRequired": false, "RequestTimeoutSeconds": 3600,
		"GameSessionQueueArns": []string{made.GameSessionQueue.GameSessionQueueArn},
	})
	return err
}

// host acts as the game server: it activates each game session at once.
func (x *flowHost) host(server *gameServer, p linkclient.Push) {
	server.client.Go("ActivateGameSession", `"GameSessionId":"`+p.GameSessionID()+`"`, func(a linkclient.Answer, err error) {
		if err := answered(a, err); err != nil {
			x.failed.Store(&err)
		}
		x.started.Add(1)
	})
}

// play puts the first players into games and connects them there.
func (x *flowHost) play(ctx context.Context, a *audience, games, inEach int) error {
	x.crowd = newCrowd(x.hall, "ws://"+x.addr, games)
	if err := x.crowd.connect(ctx); err != nil {
		return err
	}
	c, err := dialFlow(ctx, x.addr)
	if err != nil {
		return err
	}
	defer c.close()
	for i := range games {
		players := a.players[i*inEach : (i+1)*inEach]
		var seats []map[string]string
		for _, m := range players {
			seats = append(seats, map[string]string{"player_id": m.name})
		}
		made, err := flowCall[struct {
			ID string `json:"game_instance_id"`
		}](c, "partner/Flow.CreateGameInstance", "", map[string]any{"players": seats, "queue": flowQueue})
		if err != nil {
			return err
		}
		for _, m := range players {
			m.game = made.ID
		}
	}
	if err := waitUntil(ctx, func() string { return fmt.Sprintf("%d of %d games have begun", x.started.Load(), games) },
		func() (bool, error) { return x.started.Load() >= int64(games), nil }); err != nil {
		return err
	}
	if err := x.failed.Load(); err != nil {
		return *err
	}
	for _, m := range a.players[:games*inEach] {
		if err := x.join(c, m); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// join reports that a player has connected, as a game server does for a player with a player session.
func (x *flowHost) join(c *flowConn, m *flowPlayer) error {
	got, err := flowCall[struct {
		Players []struct {
			Game struct {
				Host struct {
					Session string `json:"player_session_id"`
				}
			} `json:"game_instance"`
		}
	}](c, "partner/Flow.GetPlayers", "", map[string]any{"player_ids": []string{m.name}})
	if err != nil {
		return err
	}
	if len(got.Players) != 1 || got.Players[0].Game.Host.Session == "" {
		return errors.New("the player has no player session")
	}
	time.Sleep(partnerPause)
	_, err = flowCall[struct{}](c, "partner/Game.PlayerConnected", "", map[string]string{"game_instance_id": m.game, "player_session_id": got.Players[0].Game.Host.Session})
	return err
}

// partnerPause keeps the rate below the 200 calls per second that a backend may make: each player takes two.
const partnerPause = 12 * time.Millisecond

func (x *flowHost) close() {
	if x.crowd != nil {
		x.crowd.close()
	}
}
