package mustertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/linkclient"
)

// GameServer stands in for a dedicated server, over the same protocol: a backend's test needs game sessions, not a game.
// It comes back by itself when its connection is lost, as a server SDK does.
type GameServer struct {
	ProcessID string

	fleet   *Fleet
	with    GameServerOptions
	options linkclient.Options
	given   chan GameSession
	handled sync.WaitGroup

	mu     sync.Mutex
	client *linkclient.Client
	over   bool // it is not to come back
	hosted string
}

// GameSession is what a game server is told to host.
type GameSession struct {
	ID             string // the ARN
	Name, Data     string
	MaxPlayers     int
	Port           int
	MatchmakerData string
	Properties     map[string]string
}

// GameServerOptions say how a game server behaves that does not behave well. They run in a goroutine of their own.
type GameServerOptions struct {
	OnGameSession func(*GameServer, GameSession) // nil: it activates the game session at once
	OnTerminate   func(*GameServer)              // nil: it ends, as it is told
}

// StartGameServer connects a game server that does as it is told, and waits until it may be given a game session.
func (f *Fleet) StartGameServer() *GameServer {
	f.srv.t.Helper()
	return f.StartGameServerWith(GameServerOptions{})
}

// StartGameServerWith is StartGameServer with a behaviour of the test's choice.
func (f *Fleet) StartGameServerWith(with GameServerOptions) *GameServer {
	f.srv.t.Helper()
	p := f.ServerParameters()
	g := &GameServer{ProcessID: p.ProcessID, fleet: f, with: with, given: make(chan GameSession, 16)}
	g.options = linkclient.Options{
		URL: p.WebSocketURL, Process: p.ProcessID, Compute: p.HostID, Fleet: p.FleetID, Token: p.AuthToken,
		OnPush: g.push, OnClose: g.lost,
	}
	ctx := context.Background()
	client, err := linkclient.Dial(ctx, g.options)
	if err == nil {
		g.client = client
		f.srv.servers = append(f.srv.servers, g)
		f.srv.t.Cleanup(g.Kill)
		err = client.Activate(ctx, 7000+f.servers)
	}
	if err == nil {
		err = client.Heartbeat(ctx, true)
	}
	if err == nil { // when somebody waited for it, it hosts a game session already
		err = g.wait(func(p *fleet.Process) bool { return p.Eligible() || p.HadSession })
	}
	if err != nil {
		f.srv.t.Fatalf("mustertest: start a game server: %v", err)
	}
	return g
}

// wait waits until the service has noted something of the process, which it does after it has answered. One that has
// ended is waited for no longer.
func (g *GameServer) wait(noted func(*fleet.Process) bool) error {
	key := fleet.Key{Fleet: g.fleet.ID, Compute: g.fleet.Compute, Process: g.ProcessID}
	for done := false; !done; time.Sleep(time.Millisecond) {
		err := g.fleet.srv.running.Engine().Read(context.Background(), func(v *cell.View) error {
			p, ok := v.Process(key)
			done = !ok || p.State == fleet.Ended || noted(&p)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *GameServer) push(c *linkclient.Client, p linkclient.Push) {
	switch p.Action {
	case "CreateGameSession":
		told, err := p.GameSession()
		if err != nil {
			return // the service's own tests see to what it sends
		}
		s := GameSession{
			ID: told.GameSessionId, Name: told.GameSessionName, Data: told.GameSessionData, MaxPlayers: told.MaximumPlayerSessionCount,
			Port: told.Port, MatchmakerData: told.MatchmakerData, Properties: told.GameProperties,
		}
		g.mu.Lock()
		g.hosted = s.ID
		g.mu.Unlock()
		g.handled.Go(func() {
			if g.with.OnGameSession != nil {
				g.with.OnGameSession(g, s)
			} else if g.Activate(s.ID) != nil {
				return // it ended meanwhile
			}
			select {
			case g.given <- s:
			default: // nobody asks
			}
		})
	case "TerminateProcess":
		g.handled.Go(func() {
			if g.with.OnTerminate != nil {
				g.with.OnTerminate(g)
			} else {
				_ = g.End() // the service ends it anyway
			}
		})
	}
}

// lost comes back to a service that is restarting.
func (g *GameServer) lost(_ *linkclient.Client, why error) {
	if _, dismissed := errors.AsType[*linkclient.CloseError](why); dismissed {
		g.mu.Lock()
		g.over = true
		g.mu.Unlock()
		return
	}
	g.handled.Go(func() {
		for ; ; time.Sleep(5 * time.Millisecond) {
			g.mu.Lock()
			over := g.over
			g.mu.Unlock()
			if over {
				return
			}
			client, err := linkclient.Dial(context.Background(), g.options)
			if err != nil {
				continue
			}
			g.mu.Lock()
			g.client, over = client, g.over
			g.mu.Unlock()
			if over {
				client.Drop()
			}
			return
		}
	})
}

// comeBack waits until a lost connection has a successor that the service has noted.
func (g *GameServer) comeBack(lost *linkclient.Client, until time.Time) {
	_ = g.wait(func(p *fleet.Process) bool { // a service that has failed fails other calls
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.over || g.client != lost && p.Linked || time.Now().After(until)
	})
}

func (g *GameServer) link() *linkclient.Client {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.client
}

// GameSession waits for the next game session that this server was given and, unless its options say otherwise, has
// activated.
func (g *GameServer) GameSession() GameSession { return <-g.given }

// Activate says that players may come to a game session.
func (g *GameServer) Activate(gameSessionID string) error {
	return g.link().ActivateGameSession(context.Background(), gameSessionID)
}

// AcceptPlayer says that a player has connected.
func (g *GameServer) AcceptPlayer(playerSessionID string) error {
	return g.link().AcceptPlayer(context.Background(), g.hosts(), playerSessionID)
}

// RemovePlayer says that a player has gone.
func (g *GameServer) RemovePlayer(playerSessionID string) error {
	return g.link().RemovePlayer(context.Background(), g.hosts(), playerSessionID)
}

// hosts is the game session that the server was given last.
func (g *GameServer) hosts() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hosted
}

// Heartbeat reports the server's health. Only AdvanceLinks makes the service wait for one.
func (g *GameServer) Heartbeat(healthy bool) error {
	if err := g.link().Heartbeat(context.Background(), healthy); err != nil {
		return err
	}
	return g.wait(func(p *fleet.Process) bool { return (p.Health == fleet.Healthy) == healthy })
}

// End ends the server process in good order, and its game session with it.
func (g *GameServer) End() error {
	g.mu.Lock()
	g.over = true
	g.mu.Unlock()
	return g.link().Terminate(context.Background())
}

// Kill ends the server process without a word, as a crash does. The service gives it up when the grace for lost
// connections is over (100 s).
func (g *GameServer) Kill() {
	g.mu.Lock()
	g.over = true
	client := g.client
	g.mu.Unlock()
	client.Drop()
	if g.fleet.srv.running != nil {
		_ = g.wait(func(p *fleet.Process) bool { return !p.Linked }) // a service that has failed fails other calls
	}
}
