package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/linkclient"
)

const (
	location = "custom-bench"
	compute  = "bench-host"

	// connecting is how many game servers connect concurrently.
	connecting = 64

	// beat is the interval of health reports of a game server, which is a minute in the SDKs.
	beat = time.Minute
)

// hall is a fleet and the game servers in it.
type hall struct {
	fleet   string
	token   string
	servers []*gameServer
	onGame  func(*gameServer, linkclient.Push) // starts a game session on a game server; set before connect
	refused atomic.Int64                       // requests that found no free game server

	stop    context.CancelFunc
	beating sync.WaitGroup
}

// gameServer is one server process on its connection.
type gameServer struct {
	client *linkclient.Client
	port   int
	game   string // ARN of the game session it hosts, once there is one
}

// setUp makes location, fleet and compute.
func (b *bench) setUp(c *conn) (*hall, error) { return b.setUpAt(c, location) }

func (b *bench) setUpAt(c *conn, location string) (*hall, error) {
	if _, err := callJSON[struct{}](c, "CreateLocation", map[string]any{"LocationName": location}); err != nil {
		return nil, err
	}
	return b.setUpFleet(c, location)
}

// setUpFleet makes fleet and compute in a location that exists.
func (b *bench) setUpFleet(c *conn, location string) (*hall, error) {
	made, err := callJSON[struct{ FleetAttributes struct{ FleetId string } }](c, "CreateFleet", map[string]any{
		"Name": "bench", "ComputeType": "ANYWHERE", "Locations": []map[string]string{{"Location": location}},
	})
	if err != nil {
		return nil, err
	}
	h := &hall{fleet: made.FleetAttributes.FleetId}
	if _, err := callJSON[struct{}](c, "RegisterCompute", map[string]any{
		"FleetId": h.fleet, "ComputeName": compute, "IpAddress": "127.0.0.1", "Location": location,
	}); err != nil {
		return nil, err
	}
	issued, err := callJSON[struct{ AuthToken string }](c, "GetComputeAuthToken", map[string]any{"FleetId": h.fleet, "ComputeName": compute})
	h.token = issued.AuthToken
	return h, err
}

// callJSON makes a call over a connection that uses JSON. It is for calls that are made once.
func callJSON[O any](c *conn, operation string, in map[string]any) (out O, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	answer, err := c.send(operation, body)
	if err != nil {
		return out, err
	}
	err = json.Unmarshal(answer, &out)
	return out, err
}

// connect adds n game servers that are ready for a game session.
func (h *hall) connect(ctx context.Context, s *server, n int) error {
	h.servers = make([]*gameServer, n)
	err := inParallel(n, connecting, func(i int) error {
		g := &gameServer{port: 10_000 + i%50_000}
		h.servers[i] = g
		client, err := linkclient.Dial(ctx, h.options("ws://"+s.addr, i, g))
		if err != nil {
			return err
		}
		g.client = client
		if err := client.Activate(ctx, g.port); err != nil {
			return err
		}
		return client.Heartbeat(ctx, true)
	})
	if err != nil {
		return fmt.Errorf("connect game servers: %w", err)
	}
	beating, stop := context.WithCancel(context.Background())
	h.stop = stop
	h.beating.Go(func() { h.beat(beating) })
	return nil
}

func (h *hall) options(url string, i int, g *gameServer) linkclient.Options {
	return linkclient.Options{
		URL: url, Process: "bench-" + strconv.Itoa(i), Compute: compute, Fleet: h.fleet, Token: h.token,
		OnPush: func(_ *linkclient.Client, p linkclient.Push) {
			if p.Action == "CreateGameSession" && h.onGame != nil {
				h.onGame(g, p)
			}
		},
	}
}

// beat keeps all game servers healthy. Like real ones, they report at different times.
func (h *hall) beat(ctx context.Context) {
	tick := time.NewTicker(max(beat/time.Duration(len(h.servers)), time.Millisecond))
	defer tick.Stop()
	for i := 0; ; i = (i + 1) % len(h.servers) {
		select {
		case <-tick.C:
			h.servers[i].client.Go("HeartbeatServerProcess", linkclient.HealthMembers(true), func(linkclient.Answer, error) {})
		case <-ctx.Done():
			return
		}
	}
}

// close drops all game servers.
func (h *hall) close() {
	if h.stop != nil {
		h.stop()
	}
	h.beating.Wait()
	for _, g := range h.servers {
		if g != nil && g.client != nil {
			g.client.Drop()
		}
	}
}

// connectWithGames adds n game servers, each with a game session that is ACTIVE.
func (h *hall) connectWithGames(ctx context.Context, s *server, c *conn, n int) error {
	active := make(chan error, n)
	h.onGame = func(g *gameServer, p linkclient.Push) {
		g.game = p.GameSessionID()
		g.client.Go("ActivateGameSession", linkclient.GameSessionMembers(g.game), func(a linkclient.Answer, err error) {
			active <- answered(a, err)
		})
	}
	if err := h.connect(ctx, s, n); err != nil {
		return err
	}
	for range n {
		if err := h.createGame(ctx, c, "setup", seatsMax); err != nil {
			return err
		}
	}
	for range n {
		select {
		case err := <-active:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

const seatsMax = 200

// createGame creates a game session, and tries again while no game server is free: the health of a game server reaches the core shortly
// after the answer to its heartbeat.
func (h *hall) createGame(ctx context.Context, c *conn, data string, seats int) error {
	for {
		_, err := c.call("CreateGameSession", member{name: "FleetId", text: h.fleet}, member{name: "Location", text: location},
			member{name: "GameSessionData", text: data}, member{name: "MaximumPlayerSessionCount", number: seats})
		refused, ok := errors.AsType[*apiError](err)
		if !ok || !strings.Contains(refused.body, "FleetCapacityExceeded") || ctx.Err() != nil {
			return err
		}
		h.refused.Add(1)
		time.Sleep(time.Millisecond)
	}
}

// answered returns the error of a request that failed or was refused.
func answered(a linkclient.Answer, err error) error {
	if err == nil && a.Status != 200 {
		err = &linkclient.StatusError{Action: a.Action, Status: a.Status, Message: a.Error}
	}
	return err
}

// inParallel calls f for 0 to n-1, some at a time, and returns the first error.
func inParallel(n, atATime int, f func(i int) error) error {
	var wait sync.WaitGroup
	var once sync.Once
	var first error
	indexes := make(chan int)
	for range min(n, atATime) {
		wait.Go(func() {
			for i := range indexes {
				if err := f(i); err != nil {
					once.Do(func() { first = err })
				}
			}
		})
	}
	for i := range n {
		indexes <- i
	}
	close(indexes)
	wait.Wait()
	return first
}
