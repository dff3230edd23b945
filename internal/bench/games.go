package bench

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/linkclient"
)

// games measures game sessions. In a unit, a client creates one, and the prompted game server activates it. Then the game server ends
// its process normally and starts a new one on the same connection: docs/spec/server-sdk.md#lives.
func (b *bench) games(ctx context.Context, s *server, setup *conn) error {
	h, err := b.setUp(setup)
	if err != nil {
		return err
	}
	defer h.close()
	g, err := newGameLoad(ctx, s, h, rpcCBOR, b.sizes.gameConnections, b.sizes.gameLasts)
	if err != nil {
		return err
	}
	defer g.close()
	h.onGame = g.host
	if err := h.connect(ctx, s, b.sizes.gameServers); err != nil {
		return err
	}
	measure := cmp.Or(b.sizes.gameMeasure, b.options.Measure)
	whole := load{workers: b.sizes.gameConnections, warm: b.sizes.gameWarm, measure: measure}
	rate := b.options.Rate
	if rate == 0 {
		most, err := b.runProfiled(ctx, s, "games", whole, g.unit)
		if err != nil {
			return err
		}
		b.progress("  game sessions: %s", most)
		b.table.addLoad("game sessions, CBOR, durable", "sessions", requestsInGame, most, 0)
		rate = most.perSecond() / 2
	}
	half := whole
	half.rate, half.measure = rate, time.Millisecond
	if _, err := half.run(ctx, s, g.unit); err != nil { // the profile begins when the load is warm
		return err
	}
	half.warm, half.measure = time.Second, measure
	paced, err := b.runProfiled(ctx, s, "paced-games", half, g.unit)
	if err != nil {
		return err
	}
	b.progress("  at %.0f a second: %s", rate, paced)
	if n := h.refused.Load(); n > 0 {
		b.progress("  %d requests met no free game server and were repeated", n)
	}
	b.table.addLoad("game sessions, CBOR, durable", "sessions", requestsInGame, paced, 0)
	return nil
}

// requestsInGame counts CreateGameSession, ActivateGameSession, TerminateServerProcess, ActivateServerProcess and the first
// heartbeat. There is also the push.
const requestsInGame = 5

// gameLoad connects the clients that create game sessions with the game servers that host them: the data of a game session is the number
// of the waiting worker.
type gameLoad struct {
	ctx     context.Context
	hall    *hall
	lasts   time.Duration // of a game session
	workers []*gameWorker
}

type gameWorker struct {
	conn   *conn
	data   string
	active chan error
}

const gameDataMember = `"GameSessionData":"`

func newGameLoad(ctx context.Context, s *server, h *hall, p *protocol, connections int, lasts time.Duration) (*gameLoad, error) {
	g := &gameLoad{ctx: ctx, hall: h, lasts: lasts}
	for i := range connections {
		c, err := dial(ctx, s.addr, p, s.key)
		if err != nil {
			g.close()
			return nil, err
		}
		g.workers = append(g.workers, &gameWorker{c, strconv.Itoa(i), make(chan error, 1)})
	}
	return g, nil
}

func (g *gameLoad) close() {
	for _, w := range g.workers {
		w.conn.close()
	}
}

// unit creates a game session and waits until its game server has activated it.
func (g *gameLoad) unit(worker int) error {
	w := g.workers[worker]
	if err := g.hall.createGame(g.ctx, w.conn, w.data, 16); err != nil {
		return err
	}
	return <-w.active
}

// host acts as the game server. It runs on the goroutine that reads the connection, and must not wait.
func (g *gameLoad) host(server *gameServer, p linkclient.Push) {
	_, rest, _ := bytes.Cut(p.Raw, []byte(gameDataMember))
	digits, _, _ := bytes.Cut(rest, []byte{'"'})
	worker, err := strconv.Atoi(string(digits))
	if err != nil || worker >= len(g.workers) {
		panic(fmt.Sprintf("bench: a game session that no client waits for: %s", p.Raw))
	}
	active := g.workers[worker].active
	server.client.Go("ActivateGameSession", `"GameSessionId":"`+p.GameSessionID()+`"`, func(a linkclient.Answer, err error) {
		active <- answered(a, err)
		if err == nil {
			time.AfterFunc(g.lasts, func() { server.startOver(active) })
		}
	})
}

// startOver ends the process and starts the next one. The next client that waits for a game session gets an error if that fails.
func (g *gameServer) startOver(failed chan<- error) {
	then := func(next func()) func(linkclient.Answer, error) {
		return func(a linkclient.Answer, err error) {
			switch err := answered(a, err); {
			case err == nil:
				next()
			default:
				select {
				case failed <- err:
				default: // one error is enough
				}
			}
		}
	}
	g.client.Go("TerminateServerProcess", "", then(func() {
		g.client.Go("ActivateServerProcess", `"SdkVersion":"5.5.0","SdkLanguage":"Go","LogPaths":null,"Port":`+strconv.Itoa(g.port), then(func() {
			g.client.Go("HeartbeatServerProcess", `"HealthStatus":true`, then(func() {}))
		}))
	}))
}
