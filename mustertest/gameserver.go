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

// GameServer is a dedicated server without a game, for tests that need game sessions only. It uses the protocol of the server SDKs and
// reconnects as they do.
type GameServer struct {
	ProcessID string // "process-1"

	fleet   *Fleet
	with    GameServerOptions
	options linkclient.Options
	given   chan GameSession

	mu     sync.Mutex
	client *linkclient.Client
	over   bool // it must not reconnect
	hosted string
}

// GameSession is a game session that the service has created on a game server.
type GameSession struct {
	ID             string            // an ARN
	Name           string            // free text of the creator
	Data           string            // of the creator, for the game server
	MaxPlayers     int               // number of seats
	Port           int               // of the game server
	MatchmakerData string            // JSON about the match that created the session; otherwise empty
	Properties     map[string]string // of the creator; may be nil
}

// GameServerOptions replace the behaviour of a game server. The functions run in goroutines of their own.
type GameServerOptions struct {
	OnGameSession func(*GameServer, GameSession) // nil: activates the game session at once
	OnTerminate   func(*GameServer)              // nil: ends the process, as the service demands
}

// StartGameServer connects a game server that activates game sessions at once and ends when the service demands it. It waits until the
// service can create a game session on the server.
func (f *Fleet) StartGameServer() *GameServer {
	f.srv.t.Helper()
	return f.StartGameServerWith(GameServerOptions{})
}

// StartGameServerWith is StartGameServer with another behaviour.
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
	if err == nil { // it already has a game session if a placement waited for a server
		err = g.wait(func(p *fleet.Process) bool { return p.Eligible() || p.HadSession })
	}
	if err != nil {
		f.srv.t.Fatalf("mustertest: start a game server: %v", err)
	}
	return g
}

// wait waits until noted is true for the process, because the service records some facts only after its answer. It also returns when the
// process has ended.
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
			return // the service's own tests check what it sends
		}
		s := GameSession{
			ID: told.GameSessionId, Name: told.GameSessionName, Data: told.GameSessionData, MaxPlayers: told.MaximumPlayerSessionCount,
			Port: told.Port, MatchmakerData: told.MatchmakerData, Properties: told.GameProperties,
		}
		g.mu.Lock()
		g.hosted = s.ID
		g.mu.Unlock()
		go func() {
			if g.with.OnGameSession != nil {
				g.with.OnGameSession(g, s)
			} else if g.Activate(s.ID) != nil {
				return // the session ended meanwhile
			}
			select {
			case g.given <- s:
			default: // the test does not read them
			}
		}()
	case "TerminateProcess":
		go func() {
			if g.with.OnTerminate != nil {
				g.with.OnTerminate(g)
			} else {
				_ = g.End() // the service ends it anyway
			}
		}()
	}
}

// lost reconnects to a service that restarts.
func (g *GameServer) lost(_ *linkclient.Client, why error) {
	if _, dismissed := errors.AsType[*linkclient.CloseError](why); dismissed {
		g.mu.Lock()
		g.over = true
		g.mu.Unlock()
		return
	}
	go func() {
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
	}()
}

// comeBack waits until the service has registered a new connection instead of a lost one.
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

// sessionWait is long enough for a matchmaker that relaxes its rules in real time. A variable, so that a test need not wait for it.
var sessionWait = time.Minute

// GameSession waits for the next game session that the service has created on this server and the server has activated, or that
// OnGameSession has handled. After a minute without one it ends the test.
func (g *GameServer) GameSession() GameSession {
	g.fleet.srv.t.Helper()
	select {
	case s := <-g.given:
		return s
	case <-time.After(sessionWait):
		g.fleet.srv.t.Fatalf("mustertest: %s has no further game session after %s", g.ProcessID, sessionWait)
		panic("unreachable")
	}
}

// Activate makes a game session ACTIVE.
func (g *GameServer) Activate(gameSessionID string) error {
	return g.link().ActivateGameSession(context.Background(), gameSessionID)
}

// AcceptPlayer reports that a player has connected: RESERVED becomes ACTIVE. It fails if there is no such reservation.
func (g *GameServer) AcceptPlayer(playerSessionID string) error {
	return g.link().AcceptPlayer(context.Background(), g.hosts(), playerSessionID)
}

// RemovePlayer reports that a player has disconnected, which frees the seat.
func (g *GameServer) RemovePlayer(playerSessionID string) error {
	return g.link().RemovePlayer(context.Background(), g.hosts(), playerSessionID)
}

// hosts returns the id of the server's last game session.
func (g *GameServer) hosts() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hosted
}

// Heartbeat reports the server's health. The service expects one a minute, on the clock that AdvanceLinks moves.
func (g *GameServer) Heartbeat(healthy bool) error {
	if err := g.link().Heartbeat(context.Background(), healthy); err != nil {
		return err
	}
	return g.wait(func(p *fleet.Process) bool { return (p.Health == fleet.Healthy) == healthy })
}

// End ends the server process in an orderly way, and its game session with it.
func (g *GameServer) End() error {
	g.mu.Lock()
	g.over = true
	g.mu.Unlock()
	return g.link().Terminate(context.Background())
}

// Kill ends the server process as a crash does. The service ends its game session after the grace for lost
// connections (100 s).
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
