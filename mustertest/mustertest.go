// Package mustertest gives tests a Muster of their own: the real service, in the test's process, on a free port, with a
// data directory that goes away, and with a clock that only the test moves.
//
//	srv := mustertest.Start(t)
//	fleet := srv.NewFleet()
//	fleet.StartGameServer()
//	api := srv.GameLift() // the AWS SDK's own client
//	…
//	srv.Advance(60 * time.Second) // the reservation of a player who never came is over now
//
// # Time
//
// The clock stands still while nobody moves it, so nothing runs out while a debugger holds the test. [Server.Advance]
// goes through every deadline on its way in order: reservations, activations, placements, matches, lost connections,
// the life of game servers' auth tokens, and what is forgotten after a while. When it returns, all of it is decided, and
// a question to the API shows it.
//
// What happens between two machines stays on real time: signatures, certificates, pings, and how long a game server has
// said nothing. [Server.AdvanceLinks] moves the last two.
//
// Game servers live on real time. A server that is told to end learns of it while Advance goes on; where it shall have
// the time to react, advance up to the telling, wait for the server, and advance again.
//
// # Several at once
//
// Each Server is on its own; tests with one may run in parallel.
package mustertest

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/settings"
)

// Server is a running Muster. Its methods fail the test when the service cannot do what they ask, so they are for the
// goroutine of the test.
type Server struct {
	t       testing.TB
	options options
	clock   *engine.Clock // nil on real time
	running *service.Service
	fleets  int
	servers []*GameServer
	keys    map[string]aws.Credentials // by role; what AWSConfig uses
}

// Start starts a Muster and stops it when the test ends. Without options it takes any credentials, as `muster serve --dev`
// does, and its clock stands still.
func Start(t testing.TB, with ...Option) *Server {
	t.Helper()
	o := options{settings: settings.Defaults(), level: slog.LevelInfo}
	o.settings.Listen, o.settings.Dev, o.settings.HeapFloor = "127.0.0.1:0", true, 0
	for _, option := range with {
		if err := option(&o); err != nil {
			t.Fatalf("mustertest: %v", err)
		}
	}
	if o.settings.Data == "data" {
		o.settings.Data = t.TempDir()
	}
	s := &Server{t: t, options: o}
	if !o.settings.Dev { // without any key the service would warn that nobody can use it
		keys, err := keyring.OpenOffline(context.Background(), o.settings.Data, cell.DefaultConfig())
		if err == nil {
			_, err = keys.Create(context.Background(), testActor, keyring.New{Role: access.Admin, Name: t.Name()})
			err = errors.Join(err, keys.Close())
		}
		if err != nil {
			t.Fatalf("mustertest: first access key: %v", err)
		}
	}
	if !o.realTime {
		s.clock = engine.NewClock(time.Now())
	}
	s.start()
	s.options.settings.Listen = s.running.Addr().String() // it stays there over restarts
	t.Cleanup(s.stop)
	return s
}

// rebind is how long a restart waits for its own port, which another program may hold for a moment, and for game servers
// to come back, which the service may refuse.
const rebind = 30 * time.Second

func (s *Server) start() {
	s.t.Helper()
	log := slog.New(slog.NewTextHandler(s.t.Output(), &slog.HandlerOptions{Level: s.options.level}))
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		running, err := service.StartWith(context.Background(), service.Options{Settings: s.options.settings, Log: log, Clock: s.clock})
		switch {
		case err == nil:
			s.running = running
			return
		case !errors.Is(err, syscall.EADDRINUSE) || time.Since(began) > rebind:
			s.t.Fatalf("mustertest: start: %v", err)
		}
	}
}

func (s *Server) stop() {
	if s.running == nil {
		return
	}
	running := s.running
	s.running = nil
	if err := running.Stop(context.Background()); err != nil {
		s.t.Errorf("mustertest: stop: %v", err)
	}
}

// Endpoint is where AWS clients and the HTTP face for scripts find the service: http://127.0.0.1:PORT.
func (s *Server) Endpoint() string { return "http://" + s.options.settings.Listen }

// ServerEndpoint is the WebSocket URL for the server SDKs: ws://127.0.0.1:PORT.
func (s *Server) ServerEndpoint() string { return "ws://" + s.options.settings.Listen }

// Data is the data directory.
func (s *Server) Data() string { return s.options.settings.Data }

// Now is the time that deadlines run on.
func (s *Server) Now() time.Time { return s.running.Now() }

// Advance lets time pass. When it returns, everything that was due meanwhile has happened, in order, and is durable.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	if err := s.running.Advance(context.Background(), d); err != nil {
		s.t.Fatalf("mustertest: advance by %s: %v", d, err)
	}
}

// AdvanceLinks lets time pass for the connections of game servers, as if none had sent a heartbeat meanwhile. Pings go out
// on the way: a connection whose other end does not answer is lost, any other lives on. A game server is unhealthy after
// 125 s without a heartbeat; how long it may be so is one of the deadlines that Advance moves.
func (s *Server) AdvanceLinks(d time.Duration) {
	s.t.Helper()
	if err := s.running.AdvanceLinks(context.Background(), d); err != nil {
		s.t.Fatalf("mustertest: advance the connections by %s: %v", d, err)
	}
}

// Restart stops the service and starts it again at the same address with the same data, at the same time. Game servers of
// StartGameServer that live are connected again when it returns.
func (s *Server) Restart() {
	s.t.Helper()
	s.RestartAfter(0)
}

// RestartAfter is Restart with a service that was down for a while. What waited for somebody who could not reach it gets
// that time back; what ends by the calendar has ended.
func (s *Server) RestartAfter(down time.Duration) {
	s.t.Helper()
	before := make([]*linkclient.Client, len(s.servers))
	for i, g := range s.servers {
		before[i] = g.link()
	}
	s.stop()
	switch {
	case s.clock != nil:
		s.clock.Skip(down)
	case down > 0:
		s.t.Fatal("mustertest: RestartAfter on real time: leave RealTime out, or wait yourself")
	}
	s.start()
	until := time.Now().Add(rebind)
	for i, g := range s.servers {
		g.comeBack(before[i], until)
	}
}
