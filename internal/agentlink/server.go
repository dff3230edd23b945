package agentlink

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/hostproof"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/insist"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/signin"
	"github.com/musterhq/muster/internal/warm"
)

// Config configures the door.
type Config struct {
	Engine *engine.Engine
	Secret identity.CellSecret // the secret from which the tokens of computes are derived

	SDKEndpoint string // where a host's server processes connect
	Endpoint    string // of this door, for RefreshConnection

	// BuildURL returns where hosts download the build with a manifest; "" or nil: the service does not have the files.
	BuildURL func(manifest string) string

	Proxies  *clientaddress.Proxies
	Signins  *signin.Door
	Policies Policies // nil: no policies apply to agents

	// Holder names the issuer of the join token of a host that is refused because of that holder's quota; nil: no names.
	Holder func(quota.Holder) string

	// Node returns the id under which this node currently accepts connections; nil: a single node. Once it returns another id, DropLinks must be
	// called.
	Node func() domain.UUID

	// LogUpload returns the URL for the upload of a game session's logs; nil: none are kept.
	LogUpload func(game string) string

	Periods Periods // zero: DefaultPeriods
	Panics  *panics.Guard
	Calls   *callstats.Calls // nil: requests are not counted
	Log     *slog.Logger
}

// Periods are the waiting times of the door.
type Periods struct {
	Ping       time.Duration // interval between pings; two without a sign of life end the connection
	Superseded time.Duration // how long an old connection may stay open beside its successor; agents close it after 5 minutes at the latest
	Stuck      time.Duration // a write that takes longer ends the connection
	Rival      time.Duration // after a later connection of the same host, how long an agent must keep sending heartbeats to count as a different agent
	Exit       time.Duration // from TerminateServerProcess until a process that still runs is unhealthy
	Heartbeat  time.Duration // heartbeat interval of `muster agent`
	Watch      time.Duration // how often connections are checked
}

// DefaultPeriods returns periods suitable for both agents: the official one sends a heartbeat every minute and answers pings.
func DefaultPeriods() Periods {
	return Periods{Ping: 25 * time.Second, Superseded: 6 * time.Minute, Stuck: 10 * time.Second, Rival: 30 * time.Second, Exit: time.Minute,
		Heartbeat: 10 * time.Second, Watch: time.Second}
}

// Server is the door. It is an http.Handler for upgrades to WebSockets at its path.
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
	calls    *callstats.Door
	refusals *signin.Refusals
	counters counters
	outputs  streams

	mu     sync.Mutex
	agents map[compute][]*link // open connections of a compute, newest last
	closed bool
	shared map[string]sharing // by host: the last warning that several agents use its identity
}

// compute names a host of a fleet.
type compute struct{ fleet, name string }

type counters struct{ requests, garbage, throttled, refused, pushes atomic.Uint64 }

// Stats counts since the start; Links is the current number.
type Stats struct {
	Links     int
	Requests  uint64
	Garbage   uint64 // messages that cannot be answered
	Throttled uint64 // requests answered with 429
	Refused   uint64 // refused connections
	Pushes    uint64
	Readers   int // current readers of server processes' output
}

// Stats returns the door's counters.
func (s *Server) Stats() Stats {
	c := &s.counters
	return Stats{len(s.links()), c.requests.Load(), c.garbage.Load(), c.throttled.Load(), c.refused.Load(), c.pushes.Load(), s.outputs.count()}
}

// IsPath reports whether an upgrade at this path is for this door. Agents use the configured endpoint as it is, which may include a proxy's prefix.
func IsPath(path string) bool {
	return strings.HasSuffix(strings.TrimSuffix(path, "/"), hostproof.AgentPath)
}

var actions = []string{
	"SendHeartbeat", "DescribeRuntimeConfiguration", "NotifyServerProcessTermination", "GetFleetRoleCredentials", "AgentHello",
	"GetServerToken", "SendOutput", "RequestLogUpload",
}

// New opens the door. When ctx ends, the service is stopping: no more connections are accepted.
func New(ctx context.Context, config Config) *Server {
	if config.Periods == (Periods{}) {
		config.Periods = DefaultPeriods()
	}
	if config.Node == nil {
		config.Node = func() domain.UUID { return domain.UUID{} }
	}
	config.Log = cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	s := &Server{
		config: config, engine: config.Engine, log: config.Log, stopping: ctx, ctx: context.WithoutCancel(ctx), agents: map[compute][]*link{},
		calls: config.Calls.Door("host_agents", actions...), refusals: signin.NewRefusals(config.Log, "host agent refused"),
	}
	s.reports = insist.New(insist.Config{Open: ctx, Running: &s.running, Panics: config.Panics, Door: panicDoor})
	s.reading = frames.Config{MessageMax: agentproto.MessageMax, Pace: pace, Running: &s.running, Panics: config.Panics, Door: panicDoor}
	s.unfollow = s.engine.Follow(kernel.Kinds(new(hosting.ProcessActivated), new(hosting.GameSessionActivated), new(hosting.ProcessEnded),
		new(hosting.FleetChanged), new(hosting.ComputeRegistered), new(hosting.ComputeRemoved), new(hosting.TokenIssued),
		new(hosts.HostChanged), new(capacity.HostAssigned), new(capacity.HostReleasing), new(capacity.HostReleased)), s.follow)
	s.running.Go(s.watch)
	return s
}

// Close drops every connection without a close frame, so that the agents reconnect after a restart, and waits until all goroutines of the door have
// ended. The context given to New must have ended.
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

// DropLinks drops every connection without a close frame, so that the agents reconnect to this node or another one.
func (s *Server) DropLinks() {
	all := s.links()
	s.log.Info("the connections of host agents were dropped", "links", len(all))
	for _, l := range all {
		l.drop()
	}
}

// links lists all connections.
func (s *Server) links() (all []*link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, links := range s.agents {
		all = append(all, links...)
	}
	return all
}

// linksOf lists the connections of a compute, the newest last.
func (s *Server) linksOf(c compute) []*link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.agents[c])
}

// current returns the connection of a compute that receives the pushes, or nil.
func (s *Server) current(c compute) *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	if links := s.agents[c]; len(links) > 0 {
		return links[len(links)-1]
	}
	return nil
}

// Has reports whether a compute's agent is connected: to this node or, for a joined host, to any node.
func (s *Server) Has(fleetID, name string) (has bool) {
	if s.current(compute{fleetID, name}) != nil {
		return true
	}
	_ = s.engine.ReadHere(s.ctx, func(v *cell.View) error { // on an error the engine has stopped
		for _, h := range v.Hosts() {
			if h.Name != name || h.Silent() {
				continue
			}
			if at, compute, ok := v.Serves(h.ID); ok && at == fleetID && compute == name {
				has = true
			}
		}
		return nil
	})
	return has
}

// linksMax is the most open connections of one compute: an agent has two while it switches, more if its network is bad.
const linksMax = 16

// attach registers a new connection; it returns false if the door has closed. It ends the oldest connection beyond linksMax.
func (s *Server) attach(l *link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	links := s.agents[l.compute()]
	now := time.Now()
	for _, other := range links {
		other.supersede(now)
		other.leaving.Store(false) // an agent that was ending has a successor
	}
	if len(links) >= linksMax {
		links[0].drop()
	}
	s.agents[l.compute()] = append(links, l)
	return true
}

// detach removes an ended connection, and reports whether it was the last one. If the newest connection ends because its agent ended, this also
// applies to the older ones, which the same agent had opened: the last of them to end marks the end of the agent.
func (s *Server) detach(l *link) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	links := s.agents[l.compute()]
	if len(links) > 0 && links[len(links)-1] == l && l.leaving.Load() {
		for _, older := range links {
			older.leaving.Store(true)
			older.latest = max(older.latest, l.latest)
		}
	}
	return s.remove(l) && s.agents[l.compute()] == nil
}

// remove removes a connection, if it is there. s.mu must be locked.
func (s *Server) remove(l *link) (was bool) {
	before := s.agents[l.compute()]
	links := slices.DeleteFunc(slices.Clone(before), func(x *link) bool { return x == l })
	if s.agents[l.compute()] = links; len(links) == 0 {
		delete(s.agents, l.compute())
	}
	return len(links) < len(before)
}
