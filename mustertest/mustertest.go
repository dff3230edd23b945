// Package mustertest runs a Muster for a test: the real service, in the test's process, on a free port, with a
// temporary data directory, and with a clock that only the test moves.
//
//	srv := mustertest.Start(t)
//	fleet := srv.NewFleet()
//	fleet.StartGameServer()
//	api := srv.GameLift() // the AWS SDK's own client
//	…
//	srv.Advance(60 * time.Second) // the reservation of a player who never connected has ended
//
// # Time
//
// The clock stands still until the test moves it, so that nothing times out while a debugger holds the test. [Server.Advance]
// passes every deadline in order: reservations, activations, placements, matches, lost connections,
// game servers' auth tokens, and the removal of old records. When it returns, the next API call shows all effects.
//
// Signatures, certificates, pings and the silence of game servers stay on real time, because another machine's clock is
// involved. [Server.AdvanceLinks] moves the last two.
//
// Game servers run on real time. A server that the service ends learns of it during Advance. To give it time to react, advance up to
// that moment, wait for the server, and advance again.
//
// # Parallel tests
//
// Servers are independent of each other; tests with a Server each may run in parallel.
//
// # Requirements
//
// This package belongs to the service's module and therefore has all of the service's dependencies. To keep them out of a game's go.mod, put the
// tests that use this package into their own module.
package mustertest

import (
	"context"
	"errors"
	"log/slog"
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
	"github.com/musterhq/muster/internal/socketerror"
)

// Server is a running Muster. A method that fails ends the test with Fatal, so call them from the test's goroutine.
type Server struct {
	t       testing.TB
	options options
	clock   *engine.Clock // nil on real time
	running *service.Service
	fleets  int
	servers []*GameServer
	keys    map[string]aws.Credentials // by role, for AWSConfig
}

// Start starts a Muster, in about 15 ms, and stops it when the test ends. Without options it accepts any credentials, as `muster serve --dev`
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
	if o.settings.Data == settings.Defaults().Data {
		o.settings.Data = t.TempDir()
	}
	s := &Server{t: t, options: o}
	if !o.settings.Dev { // without any key the service would log a warning
		keys, err := keyring.OpenOffline(context.Background(), o.settings.Data, nil, cell.DefaultConfig())
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
	s.options.settings.Listen = s.running.Addr().String() // the same address after restarts
	t.Cleanup(s.stop)
	return s
}

// rebind is how long a restart waits for its own port, which another program may have for a moment, and for game servers
// to reconnect, which the service may refuse.
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
		case !socketerror.InUse(err) || time.Since(began) > rebind:
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

// Endpoint returns the URL for AWS clients, players' clients and calls over HTTP: http://127.0.0.1:PORT.
func (s *Server) Endpoint() string { return "http://" + s.options.settings.Listen }

// ServerEndpoint returns the WebSocket URL for the server SDKs: ws://127.0.0.1:PORT.
func (s *Server) ServerEndpoint() string { return "ws://" + s.options.settings.Listen }

// Data returns the data directory.
func (s *Server) Data() string { return s.options.settings.Data }

// Now returns the time on the service's clock.
func (s *Server) Now() time.Time { return s.running.Now() }

// Advance moves the clock forward by d, which must not be negative. When it returns, all deadlines until then have taken effect, in order, and
// are durable. It fails the test with the option RealTime.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	if err := s.running.Advance(context.Background(), d); err != nil {
		s.t.Fatalf("mustertest: advance by %s: %v", d, err)
	}
}

// AdvanceLinks moves the clock of game servers' connections forward by d, as if no server had sent a heartbeat meanwhile. The service sends
// pings, and closes connections that do not answer. A game server is unhealthy after
// 125 s without a heartbeat; the time that it may be unhealthy is one of the deadlines that Advance passes.
func (s *Server) AdvanceLinks(d time.Duration) {
	s.t.Helper()
	if err := s.running.AdvanceLinks(context.Background(), d); err != nil {
		s.t.Fatalf("mustertest: advance the connections by %s: %v", d, err)
	}
}

// Restart stops the service and starts it again with the same address, data and time. When it returns, the running game servers of
// StartGameServer have reconnected.
func (s *Server) Restart() {
	s.t.Helper()
	s.RestartAfter(0)
}

// RestartAfter is Restart after a downtime. Deadlines that wait for clients or servers move by the downtime, because these could not reach
// the service; other deadlines have passed. If down is not 0, RestartAfter does not work with the option RealTime.
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
		s.t.Fatal("mustertest: RestartAfter needs a clock that stands still: remove the option RealTime, or wait in the test")
	}
	s.start()
	until := time.Now().Add(rebind)
	for i, g := range s.servers {
		g.comeBack(before[i], until)
	}
}
