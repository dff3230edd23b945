package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	queueName         = "bench-queue"
	placedPlayers     = 10
	placedLocations   = 3 // for which each player reports a latency
	queueDestinations = 10
)

// placements measures placements. In a unit, a client asks for a game session with ten players through a queue of ten destinations, and
// the prompted game server activates it, which fulfils the placement. Then the game server starts over on the same connection.
func (b *bench) placements(ctx context.Context, s *server, setup *conn) error {
	p := &placementLoad{run: strconv.FormatInt(time.Now().UnixNano(), 36)}
	defer p.close()
	if err := p.setUp(ctx, b, s, setup); err != nil {
		return err
	}
	whole := load{workers: b.sizes.gameConnections, warm: b.sizes.gameWarm, measure: b.options.Measure}
	most, err := b.runProfiled(ctx, s, "placements", whole, p.unit)
	if err != nil {
		return err
	}
	b.progress("  placements: %s", most)
	paced := whole
	paced.rate, paced.warm = min(b.sizes.placementRate, most.perSecond()/2), b.sizes.gameWarm
	slow, err := b.runProfiled(ctx, s, "placements-paced", paced, p.unit)
	if err != nil {
		return err
	}
	b.progress("  paced: %s", slow)
	b.table.addLoad("placements of ten players, JSON 1.1, durable", "placements", requestsInGame, most, 0)
	b.table.addLoad("placements of ten players, JSON 1.1, durable", "placements", requestsInGame, slow, 0)
	return nil
}

// placementLoad connects the clients that start placements with the game servers that get the game sessions.
type placementLoad struct {
	run     string // makes placement ids unique to this run
	games   *gameLoad
	halls   []*hall
	started atomic.Int64
}

func (p *placementLoad) setUp(ctx context.Context, b *bench, s *server, c *conn) (err error) {
	if p.games, err = newGameLoad(ctx, s, nil, awsJSON, b.sizes.gameConnections, b.sizes.gameLasts); err != nil {
		return err
	}
	var destinations []map[string]string
	for i := range queueDestinations {
		h, err := b.setUpAt(c, placedAt(i))
		if err != nil {
			return err
		}
		p.halls = append(p.halls, h)
		h.onGame = p.games.host
		if err := h.connect(ctx, s, b.sizes.gameServers/queueDestinations); err != nil {
			return err
		}
		destinations = append(destinations, map[string]string{"DestinationArn": "arn:aws:gamelift:" + region + "::fleet/" + h.fleet})
	}
	_, err = callJSON[struct{}](c, "CreateGameSessionQueue", map[string]any{"Name": queueName, "Destinations": destinations})
	return err
}

func placedAt(i int) string { return fmt.Sprintf("%s-%d", location, i) }

func (p *placementLoad) close() {
	for _, h := range p.halls {
		h.close()
	}
	if p.games != nil {
		p.games.close()
	}
}

// unit starts a placement and waits until its game server has activated the game session.
func (p *placementLoad) unit(worker int) error {
	w := p.games.workers[worker]
	if _, err := w.conn.send("StartGameSessionPlacement", p.request(w)); err != nil {
		return err
	}
	select {
	case err := <-w.active:
		return err
	case <-time.After(30 * time.Second):
		return errors.New("a placement was not fulfilled within 30 s")
	}
}

func (p *placementLoad) request(w *gameWorker) []byte {
	n := p.started.Add(1)
	var players, latencies []map[string]any
	for i := range placedPlayers {
		player := fmt.Sprintf("player-%d-%d", n, i)
		players = append(players, map[string]any{"PlayerId": player})
		for l := range placedLocations {
			latencies = append(latencies, map[string]any{
				"PlayerId": player, "RegionIdentifier": placedAt((int(n) + l) % queueDestinations), "LatencyInMilliseconds": 20 + (i*7+l*31)%90,
			})
		}
	}
	body, err := json.Marshal(map[string]any{
		"PlacementId": p.run + "-" + strconv.FormatInt(n, 36), "GameSessionQueueName": queueName, "MaximumPlayerSessionCount": placedPlayers,
		"GameSessionData": w.data, "DesiredPlayerSessions": players, "PlayerLatencies": latencies,
	})
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	return body
}
