package serverlink

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/insist"
	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/signin"
	"github.com/musterhq/muster/internal/sigv4"
	"github.com/musterhq/muster/internal/tracing"
	"github.com/musterhq/muster/internal/warm"
)

// Config configures the door.
type Config struct {
	Engine *engine.Engine
	Secret identity.CellSecret // the secret from which process tokens are derived
	Keys   identity.Finder

	// AnyKey allows game servers to sign with unknown access keys: for development on one machine.
	AnyKey bool

	// Endpoint is the URL in RefreshConnection pushes; http and https mean ws and wss. Empty: the URL by which the game server
	// connected, which supports any number of names for one service, but not a proxy that terminates TLS.
	Endpoint string

	// Links is the clock of connections: heartbeats, pings, and all of Periods except Stuck; nil: real time.
	Links *LinkClock

	// ClockSkew is by how much the clock of a signing game server may differ. 0: sigv4.ServerSkew.
	ClockSkew time.Duration

	Proxies *clientaddress.Proxies // for the address of a game server
	Signins *signin.Door           // sees connections

	// Node returns the id under which this node currently accepts connections; nil: a single node. Once it returns another id,
	// connections under the previous id count as lost, and DropLinks must be called.
	Node func() domain.UUID

	Rates   Rates   // zero: DefaultRates
	Periods Periods // zero: DefaultPeriods
	Panics  *panics.Guard
	Calls   *callstats.Calls // nil: requests are not counted
	Tracing *tracing.Tracer  // of pushes that follow from traced commands, and of the answers to them; nil: no tracing
	Log     *slog.Logger
}

// Periods are the waiting times of the door.
type Periods struct {
	Ping       time.Duration // interval between pings; two without a sign of life end the connection
	Silence    time.Duration // without a heartbeat a process is unhealthy; healthy ones may come 120 s apart
	Settle     time.Duration // after ActivateServerProcess, how long a first heartbeat is awaited
	Superseded time.Duration // how long an old connection may stay open beside its successor
	Exit       time.Duration // from TerminateServerProcess to the end of the connection
	Evict      time.Duration // how long a process that counted as crashed and returned has to end
	Ban        time.Duration // how long it is refused after that
	Repeat     time.Duration // interval between RefreshConnection pushes without effect
	ChangeOver time.Duration // after a RefreshConnection push, how long a new connection is awaited
	Stuck      time.Duration // a write that takes longer ends the connection
	Watch      time.Duration // how often all of this is checked
}

// DefaultPeriods returns the periods of docs/spec/server-sdk.md#timers, #frames, #reconnection and #lives.
func DefaultPeriods() Periods {
	return Periods{
		Ping: 25 * time.Second, Silence: 125 * time.Second, Settle: 2 * time.Second, Superseded: 10 * time.Second,
		Exit: 30 * time.Second, Evict: 5 * time.Minute, Ban: 10 * time.Minute,
		Repeat: time.Minute, ChangeOver: 20 * time.Second, Stuck: 10 * time.Second, Watch: 500 * time.Millisecond,
	}
}

// LinkClock shows real time plus what AdvanceLinks has added.
type LinkClock struct{ ahead atomic.Int64 }

func (c *LinkClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Server is the door. It is an http.Handler for the requests that IsUpgrade accepts.
type Server struct {
	config   Config
	engine   *engine.Engine
	log      *slog.Logger
	reading  frames.Config
	stopping context.Context // ends when the service is stopping
	ctx      context.Context // never ends: started work is completed
	unfollow func()
	running  warm.Group
	reports  *insist.Reports
	counters counters
	calls    *callstats.Door
	refusals *signin.Refusals
	warned   sync.Map // releases of SDKs, see warnOfSDK
	skew     live.Value[time.Duration]

	passing sync.Mutex // held for a pass over all processes
	watched []*process // scratch memory of that pass

	mu        sync.Mutex
	processes map[fleet.Key]*process
	closed    bool
}

// SetClockSkew changes by how much the clock of a signing game server may differ. Existing connections stay.
func (s *Server) SetClockSkew(skew time.Duration) { s.skew.Set(skew) }

// messageMax is the largest message accepted from a game server. The largest that an SDK sends, a backfill request with 199 players,
// is smaller than 1 MiB.
const messageMax = 1<<20 + 1<<10

// New opens the door. When ctx ends, the service is stopping: no more connections are accepted, and connections lost from then on
// are not the game servers' fault.
func New(ctx context.Context, config Config) *Server {
	if config.Rates == (Rates{}) {
		config.Rates = DefaultRates()
	}
	if config.Periods == (Periods{}) {
		config.Periods = DefaultPeriods()
	}
	config.Links = cmp.Or(config.Links, &LinkClock{})
	if config.Node == nil {
		config.Node = func() domain.UUID { return domain.UUID{} }
	}
	config.Log = cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	if rest, ok := strings.CutPrefix(config.Endpoint, "http"); ok {
		config.Endpoint = "ws" + rest
	}
	s := &Server{refusals: signin.NewRefusals(config.Log, "game server refused"), config: config, engine: config.Engine, log: config.Log, stopping: ctx, ctx: context.WithoutCancel(ctx), processes: map[fleet.Key]*process{}, calls: config.Calls.Door("game_servers", slices.Collect(maps.Keys(actions))...)}
	s.SetClockSkew(cmp.Or(config.ClockSkew, sigv4.ServerSkew))
	s.reports = insist.New(insist.Config{Open: s.stopping, Running: &s.running, Panics: config.Panics, Door: panicDoor})
	// SDKs send the games' texts unchanged. An invalid byte in a player's name must not cost the game server its connection: see
	// unquote.
	s.reading = frames.Config{MessageMax: messageMax, AnyText: true, Pace: config.Rates.pace(), Running: &s.running, Panics: config.Panics, Door: panicDoor}
	s.unfollow = s.engine.Follow(kernel.Kinds(new(hosting.GameSessionCreated), new(hosting.ProcessTerminationAsked), new(hosting.ProcessEnded), new(matchmaking.HostedChanged),
		new(hosting.ComputeRegistered), new(hosting.TokenIssued), new(hosting.ProcessConnected)), s.follow)
	s.running.Go(s.watch)
	return s
}

// now returns the time on the connections' clock.
func (s *Server) now() time.Time { return s.config.Links.now() }

// Close drops every connection without a close frame, so that the game servers reconnect after a restart, and waits until all
// goroutines of the door have ended. The context given to New must have ended.
func (s *Server) Close() {
	<-s.stopping.Done()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, l := range s.links() {
		l.drop()
	}
	s.unfollow()
	s.running.Wait()
}

// DropLinks drops every connection without a close frame, so that the game servers reconnect to this node or another one.
func (s *Server) DropLinks() {
	all := s.links()
	s.log.Info("the connections of game servers were dropped", "links", len(all))
	for _, l := range all {
		l.drop()
	}
}

// links lists all connections.
func (s *Server) links() (all []*link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.processes {
		p.mu.Lock()
		all = append(all, p.links...)
		p.mu.Unlock()
	}
	return all
}

type counters struct {
	requests, garbage, throttled, refused, pushes, lost atomic.Uint64
}

// Stats counts since the start; Links and Processes are current numbers.
type Stats struct {
	Links, Processes int
	Requests         uint64
	Garbage          uint64 // messages that cannot be answered
	Throttled        uint64 // requests answered with 429
	Refused          uint64 // refused connections
	Pushes           uint64
	Lost             uint64 // current connections of a process that ended, for any reason
}

// Stats returns the door's counters.
func (s *Server) Stats() Stats {
	st := Stats{
		Requests: s.counters.requests.Load(), Garbage: s.counters.garbage.Load(), Throttled: s.counters.throttled.Load(),
		Refused: s.counters.refused.Load(), Pushes: s.counters.pushes.Load(), Lost: s.counters.lost.Load(),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.processes {
		p.mu.Lock()
		st.Links += len(p.links)
		if len(p.links) > 0 {
			st.Processes++
		}
		p.mu.Unlock()
	}
	return st
}
