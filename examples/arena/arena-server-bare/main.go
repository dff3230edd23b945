// Command arena-server-bare is arena-server without a library: it implements the service's protocol itself, JSON over a
// WebSocket. It shows the few steps that a server in a language without a server SDK has to implement:
//
//	connect              wss://host?pID=…&FleetId=…&ComputeId=…&Authorization=…&sdkVersion=…&sdkLanguage=…
//	ActivateServerProcess, then HeartbeatServerProcess at once and every minute
//	← CreateGameSession  load the level, ActivateGameSession
//	AcceptPlayerSession, RemovePlayerSession for each player
//	← TerminateProcess   TerminateServerProcess, and exit
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/musterhq/muster/examples/arena"
)

// The versions of the protocol are those of the SDKs.
const (
	sdkVersion  = "5.5.0"
	sdkLanguage = "Go"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "arena-server-bare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("arena-server-bare", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var who identity
	flags.StringVar(&who.url, "websocketurl", "", "`URL` of the service")
	flags.StringVar(&who.token, "authtoken", "", "`token` from get-compute-auth-token")
	flags.StringVar(&who.fleet, "fleetid", "", "`id` of the fleet")
	flags.StringVar(&who.host, "hostid", "", "`name` under which this host is registered")
	port := flags.Int("port", 0, "`port` on which game clients connect; 0: a free one")
	bind := flags.String("bind", "", "`address` to listen on for players (default: all)")
	heartbeat := flags.Duration("heartbeat", time.Minute, "time between two reports of health")
	if err := flags.Parse(args); err != nil {
		return err
	}
	who.process = "process-" + rand.Text()
	log := slog.New(slog.NewTextHandler(stderr, nil))
	listener, err := arena.Listen(*bind, *port)
	if err != nil {
		return err
	}
	log.Info("listening for players", "address", listener.Addr().String())

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &server{log: log, stop: stop, sessions: map[uint64]string{}}
	s.room = arena.NewRoom(s, log)
	s.room.Won = func(why string) { stop(errors.New(why)) }
	s.room.Retry = retry
	if s.link, err = dial(who, log, s.hear); err != nil {
		return err
	}
	defer s.link.close()
	served := make(chan error, 1)
	go func() { served <- s.room.Serve(listener) }()
	if err := s.link.do("ActivateServerProcess", map[string]any{
		"SdkVersion": sdkVersion, "SdkLanguage": sdkLanguage, "Port": listener.Addr().(*net.TCPAddr).Port, "LogPaths": []string{},
	}); err != nil {
		return err
	}
	log.Info("ready for a game session", "process", who.process)
	s.beat(ctx, *heartbeat)
	return s.end(listener, served, context.Cause(ctx))
}

// server is a server process: it hosts one game session and then ends.
type server struct {
	log  *slog.Logger
	link *link
	room *arena.Room
	stop context.CancelCauseFunc

	mu       sync.Mutex
	game     string            // id of the game session
	sessions map[uint64]string // player sessions by connection
}

// beat reports health until the end. The first report makes the process eligible for a game session.
func (s *server) beat(ctx context.Context, every time.Duration) {
	for {
		if err := s.link.do("HeartbeatServerProcess", map[string]any{"HealthStatus": true}); err != nil {
			s.log.Warn("report health", "error", err)
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return
		}
	}
}

// hear handles messages from the service.
func (s *server) hear(action string, message []byte) {
	var m struct {
		GameSessionId                        string
		GameProperties                       map[string]string
		RefreshConnectionEndpoint, AuthToken string
	}
	if err := json.Unmarshal(message, &m); err != nil {
		s.log.Warn("the service sent what cannot be read", "action", action, "error", err)
		return
	}
	switch action {
	case "CreateGameSession":
		s.create(m.GameSessionId, m.GameProperties)
	case "TerminateProcess":
		s.stop(errors.New("the service ends this process"))
	case "RefreshConnection":
		s.link.refresh(m.RefreshConnectionEndpoint, m.AuthToken)
	}
}

func (s *server) create(game string, properties map[string]string) {
	world, err := arena.Load(properties, uint64(len(game)))
	if err != nil {
		s.log.Error("load the level", "error", err)
		s.stop(err) // the process ends, and the game session with it
		return
	}
	s.mu.Lock()
	s.game = game
	s.mu.Unlock()
	s.room.Open(world)
	if err := s.link.do("ActivateGameSession", map[string]any{"GameSessionId": game}); err != nil {
		s.stop(err)
		return
	}
	s.log.Info("game session active", "session", game)
}

// Admit accepts the player session of a client.
func (s *server) Admit(_ context.Context, connection uint64, playerSession string) error {
	if err := s.link.do("AcceptPlayerSession", s.player(playerSession)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[connection] = playerSession
	return nil
}

// HandlePlayerLeave frees the seat of a client that has disconnected.
func (s *server) HandlePlayerLeave(_ context.Context, connection uint64) error {
	s.mu.Lock()
	playerSession, ok := s.sessions[connection]
	delete(s.sessions, connection)
	s.mu.Unlock()
	if !ok {
		return nil
	}
	return s.link.do("RemovePlayerSession", s.player(playerSession))
}

func (s *server) player(session string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]any{"GameSessionId": s.game, "PlayerSessionId": session}
}

// retry reports whether the service failed, rather than refused.
func retry(err error) bool {
	no, ok := errors.AsType[*refused](err)
	return !ok || no.StatusCode == 429 || no.StatusCode >= 500
}

// end notifies all players, and then the service.
func (s *server) end(listener net.Listener, served <-chan error, why error) error {
	s.log.Info("ending", "why", why)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	listener.Close()
	return errors.Join(<-served, s.room.Close(ctx, why.Error()), s.link.do("TerminateServerProcess", nil))
}
