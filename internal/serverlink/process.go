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

// process is this node's record of a server process that is, or was a moment ago, connected to it. The source of truth about
// it is the core; this record has its connections, its heartbeats, and the times of due work.
type process struct {
	key    fleet.Key
	server *Server

	prompted atomic.Pointer[prompted] // the last push of a game session, if it is traced

	buckets [rateClasses]rate.Bucket

	mu      sync.Mutex
	links   []*link   // open ones, the newest last
	current *link     // gets the pushes; nil when there is none
	left    time.Time // when the last connection ended; the record is kept for a while, because most processes reconnect

	ready       bool         // ActivateServerProcess has been carried out
	readySince  time.Time    // from then on a first heartbeat is expected
	health      fleet.Health // as the core knows it
	settled     bool
	lastBeat    time.Time // or when heartbeats began to be expected
	lastHealthy time.Time

	// ended is a hint: it may be late by a moment, so code that acts on it reads the core first.
	ended      bool
	refreshing time.Time // when its current link was told to open another connection; zero when no change is under way
	refreshed  *link     // that link
	choring    bool      // the watch has given it a task
	exitBy     time.Time // then the connections are closed with 1000, if the process has really ended
	evictBy    time.Time // it counted as crashed and came back; it has until then to end
	evicted    bool      // it was told to end
	banned     time.Time // its connections are refused until then
}

// attach registers a new connection, or returns nil when the door has closed. The current connection is
// chosen by settle, from the state in the core. The caller owes s.running a Done.
func (s *Server) attach(l *link, key fleet.Key) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.running.Add(1)
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

// known returns the record of a process, or nil.
func (s *Server) known(key fleet.Key) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.processes[key]
}

// forget drops the record of a process that has been without a connection for long, and is not refused any more.
func (s *Server) forget(p *process, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.links) == 0 && now.Sub(p.left) >= s.engine.CellConfig().Hosting.LinkGrace && now.After(p.banned) {
		delete(s.processes, p.key)
	}
}

// lost reports whether the link counts as lost, because the node was given up since it was attached.
func (l *link) lost() bool { return l.node != l.process.server.config.Node() }

// connected notes that a process has connected, maybe to another node: then those of its links that are here get no more pushes. The state says which is the newest, since
// the event may be of a connection before the one that this node has attached meanwhile. One that is about to be attached here does the same for the others when it is.
func (s *Server) connected(key fleet.Key) {
	p := s.known(key)
	if p == nil {
		return
	}
	_ = s.engine.ReadHere(s.ctx, func(v *cell.View) error { // on an error the engine has stopped, and so will the links
		now, ok := v.Process(key)
		p.mu.Lock()
		defer p.mu.Unlock()
		if ok && now.Linked && now.Node != 0 && !slices.ContainsFunc(p.links, func(l *link) bool { return l.id == now.Link }) {
			p.makeCurrent(nil)
			p.refreshing, p.refreshed = time.Time{}, nil // the other node ends it
		}
		return nil
	})
}

// settle takes over the core's state of a process that has just connected with l. The link that the core has as the
// newest becomes the current one; l, if that link is gone; none, if another node has it.
func (p *process) settle(l *link, newest uint64, found fleet.Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.know(found, p.readySince.IsZero())
	if len(p.links) == 1 {
		p.exitBy = time.Time{} // that was for the connections it had
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
	if found.Refreshing && p.refreshing.IsZero() && current != nil { // another node has begun it: it ends when the time for it is over
		p.refreshing, p.refreshed = p.server.now(), current
	}
}

// makeCurrent directs pushes to l; nil: they go to another node. The other links may stay a while: their SDKs close them, and a close frame from here would
// make Go drop the new connection. docs/spec/server-sdk.md#reconnection. p.mu is locked.
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

// remove takes a connection out and reports whether it was the current one.
func (p *process) remove(l *link) (wasCurrent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links = slices.DeleteFunc(p.links, func(other *link) bool { return other == l })
	p.left = p.server.now()
	if p.current != l {
		return false
	}
	p.current = nil
	p.refreshing, p.refreshed = time.Time{}, nil // the loss ends it in the core too
	return true
}

// currentLink is where pushes go; nil when the process is not connected.
func (p *process) currentLink() *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// know takes over the core's state of the process. anew means that this node has no record of its heartbeats: they
// went to another node, or the service was down, and are awaited from now on. p.mu is locked.
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

// bansNow reports whether the process counted as crashed and did not end when it was told to.
func (p *process) bansNow(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Before(p.banned)
}
