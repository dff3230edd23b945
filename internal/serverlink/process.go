package serverlink

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/rate"
)

// process is this node's record of a server process that is or recently was connected to it. The core is the source of truth about the process; this
// record holds its connections, its heartbeats, and the times of due work.
type process struct {
	key    fleet.Key
	server *Server

	prompted atomic.Pointer[prompted] // the last push of a game session, if traced

	buckets [rateClasses]rate.Bucket

	mu      sync.Mutex
	links   []*link   // open ones, newest last
	current *link     // receives the pushes; nil if there is none
	left    time.Time // when the last connection ended; the record is kept for a while, because most processes reconnect
	node    uint32    // this node's number in the core when the latest connection was attached; 0: a single node

	ready       bool         // ActivateServerProcess has been executed
	readySince  time.Time    // since when a first heartbeat is expected
	health      fleet.Health // as recorded in the core
	settled     bool
	lastBeat    time.Time // last heartbeat, or when heartbeats became expected
	lastHealthy time.Time
	reported    fleet.Health // by the last heartbeat
	passing     bool         // a task that passes it to the core has not begun

	// ended is a hint that may be slightly late, so code that acts on it reads the core first.
	ended      bool
	refreshing time.Time // when refreshed was asked to open another connection; zero if no switch is in progress
	refreshed  *link     // the link that was asked
	choring    bool      // watch has given it a task
	exitBy     time.Time // then its connections are closed with 1000, if the process has really ended
	evictBy    time.Time // it counted as crashed but returned; it must end by then
	evicted    bool      // it was asked to end
	banned     time.Time // its connections are refused until then
}

// attach registers a new connection; it returns nil if the door has closed. settle chooses the current connection afterwards, according to the core's
// state. The caller must call s.running.Done.
func (s *Server) attach(l *link, key fleet.Key) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.running.Add()
	p := s.processes[key]
	if p == nil {
		p = &process{key: key, server: s}
		s.processes[key] = p
	}
	l.process = p
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links = append(p.links, l)
	return p
}

// known returns the record of a process; nil if there is none.
func (s *Server) known(key fleet.Key) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.processes[key]
}

// forget drops the record of a process that has had no connection for long and is no longer refused.
func (s *Server) forget(p *process, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.links) == 0 && now.Sub(p.left) >= s.engine.CellConfig().Hosting.LinkGrace && now.After(p.banned) {
		delete(s.processes, p.key)
	}
}

// lost reports whether the link counts as lost, because the node was given up since the link was attached.
func (l *link) lost() bool { return l.node != l.process.server.config.Node() }

// connected records that a process has connected, possibly to another node; in that case its links here receive no more pushes. The state tells which
// link is the newest, because the event may be about a connection older than one attached here since. A connection that is about to be attached here
// will do the same to the other links.
func (s *Server) connected(key fleet.Key) {
	p := s.known(key)
	if p == nil {
		return
	}
	_ = s.engine.ReadHere(s.ctx, func(v *cell.View) error { // an error means that the engine has stopped, which also ends the links
		now, ok := v.Process(key)
		p.mu.Lock()
		defer p.mu.Unlock()
		if ok && now.Linked && now.Node != 0 && !slices.ContainsFunc(p.links, func(l *link) bool { return l.id == now.Link }) {
			p.makeCurrent(nil)
			p.refreshing, p.refreshed = time.Time{}, nil // the other node ends the switch
			if now.Node != p.node {
				p.readySince = time.Time{} // the other node gets its heartbeats: if it returns, they are expected anew
			}
		}
		return nil
	})
}

// settle takes over the core's state of a process that has just connected with l. The link that is the newest according to the core becomes the
// current one; l if that link is gone; none if another node has it.
func (p *process) settle(l *link, newest uint64, found fleet.Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.know(found, p.readySince.IsZero())
	if found.Link == l.id {
		p.node = found.Node
	}
	if len(p.links) == 1 {
		p.exitBy = time.Time{} // the deadline was for its previous connections
	}
	if p.ended && p.evictBy.IsZero() {
		p.evictBy = p.server.now().Add(p.server.engine.CellConfig().Hosting.ReadyTimeout)
	}
	current := l
	if found.Node != 0 && found.Linked && newest != l.id {
		current = nil
	}
	for _, other := range p.links {
		if other.id == newest {
			current = other
		}
	}
	p.makeCurrent(current)
	if found.Refreshing && p.refreshing.IsZero() && current != nil { // another node started it; it ends when its time is over
		p.refreshing, p.refreshed = p.server.now(), current
	}
}

// makeCurrent directs pushes to l; nil if they go to another node. The other links may stay open for a while: their SDKs close them, and a close
// frame from here would make Go drop the new connection. docs/spec/server-sdk.md#reconnection. p.mu must be locked.
func (p *process) makeCurrent(l *link) {
	p.current = l
	if l != nil {
		l.superseded = time.Time{}
	}
	for _, other := range p.links {
		if other != l && other.superseded.IsZero() {
			other.superseded = p.server.now()
		}
	}
}

// remove removes a connection and reports whether it was the current one.
func (p *process) remove(l *link) (wasCurrent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links = slices.DeleteFunc(p.links, func(other *link) bool { return other == l })
	p.left = p.server.now()
	if p.current != l {
		return false
	}
	p.current = nil
	p.refreshing, p.refreshed = time.Time{}, nil // in the core, the loss of the connection ends it too
	return true
}

// currentLink returns the link that receives pushes; nil if the process is not connected.
func (p *process) currentLink() *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// know takes over the core's state of the process. anew reports that this node has no record of its heartbeats, because they went to another node or
// the service was down; they are expected from now on. p.mu must be locked.
func (p *process) know(found fleet.Process, anew bool) {
	p.ended = found.State == fleet.Ended
	p.ready = found.State == fleet.ProcessReady
	p.health, p.settled = found.Health, found.Settled
	if anew {
		now := p.server.now()
		p.readySince, p.lastBeat, p.lastHealthy = now, now, now
	}
	if !p.ended {
		p.exitBy, p.evictBy, p.banned, p.evicted = time.Time{}, time.Time{}, time.Time{}, false
	}
}

// bansNow reports whether the process is refused, because it counted as crashed and did not end when asked to.
func (p *process) bansNow(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Before(p.banned)
}
