package serverlink

import (
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/steady"
)

// watch periodically checks every process for due work. One goroutine with coarse steps costs an idle connection nothing, while a
// timer for each purpose would cost more than the connection.
func (s *Server) watch() {
	tick := time.NewTicker(s.config.Periods.Watch)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.passing.Lock()
			s.watchAll()
			s.passing.Unlock()
		case <-s.stopping.Done():
			return
		}
	}
}

// watchAll checks every process once and returns the connections that it dropped. s.passing must be locked.
func (s *Server) watchAll() (dropped []*link) {
	s.mu.Lock()
	s.watched = slices.AppendSeq(s.watched[:0], maps.Values(s.processes))
	s.mu.Unlock()
	now, wall := s.now(), domain.TimeOf(s.engine.Now())
	for _, p := range s.watched {
		dropped = append(dropped, s.watchProcess(p, now, wall)...)
	}
	clear(s.watched)
	return dropped
}

// watchProcess never blocks: work that may block becomes a task of a link. If it panics, the process loses its connections.
func (s *Server) watchProcess(p *process, now time.Time, wall domain.Time) (dropped []*link) {
	defer s.config.Panics.Confine(panicDoor, p.drop)
	x := s.dueOf(p, now, wall)
	if x.forget {
		s.forget(p, now)
	}
	for _, l := range x.dismissed {
		l.dismiss(closeNormal)
	}
	if len(x.chores) > 0 {
		x.on.enqueueOwn(func(l *link) {
			defer p.choresDone()
			for _, chore := range x.chores {
				chore(l)
			}
		})
	}
	return x.dropped
}

// due is the work found by a check of a process.
type due struct {
	forget             bool // it has no connection any more
	dismissed, dropped []*link
	chores             []func(*link)
	on                 *link // the link that performs the chores
}

func (s *Server) dueOf(p *process, now time.Time, wall domain.Time) (x due) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.links) == 0 {
		return due{forget: true}
	}
	x.chores, x.on = p.chores(now, wall)
	for _, l := range p.links {
		if !l.superseded.IsZero() && now.Sub(l.superseded) >= s.config.Periods.Superseded {
			x.dismissed = append(x.dismissed, l)
		}
		if !l.checkLife(now, &s.config.Periods) {
			l.drop()
			x.dropped = append(x.dropped, l)
		}
	}
	return x
}

func (p *process) choresDone() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.choring = false
}

// drop ends all connections of the process.
func (p *process) drop() {
	p.mu.Lock()
	links := slices.Clone(p.links)
	p.mu.Unlock()
	for _, l := range links {
		l.drop()
	}
}

// chores returns the due work of a process and the link for it. p.mu must be locked.
func (p *process) chores(now time.Time, wall domain.Time) (due []func(*link), on *link) {
	t := &p.server.config.Periods
	if p.choring {
		return nil, nil
	}
	switch on = p.current; {
	case on == nil:
		on = p.links[0] // receives no pushes, but can perform tasks
	case p.ready && !p.ended:
		switch {
		case p.health == fleet.Unheard && !p.settled && now.Sub(p.readySince) >= t.Settle:
			due = append(due, (*link).settle)
		case p.health == fleet.Healthy && now.Sub(p.lastBeat) >= t.Silence:
			due = append(due, func(l *link) { l.process.reportHealth(false) })
		}
		if p.changedOver(now) {
			due = append(due, (*link).endRefresh)
		} else if on.needsRefresh(now, wall) {
			on.refreshAfter = now.Add(t.Repeat)
			due = append(due, (*link).refresh)
		}
	}
	if !p.evictBy.IsZero() && now.After(p.evictBy) || !p.exitBy.IsZero() && now.After(p.exitBy) {
		due = append(due, func(l *link) { l.process.expel() })
	}
	p.choring = len(due) > 0
	return due, on
}

// checkLife pings a connection, and reports false for a dead or stuck one. p.mu must be locked.
func (l *link) checkLife(now time.Time, t *Periods) bool {
	heard := steady.Time(l.heard.Load())
	stuck := l.stuckSince()
	switch {
	case !stuck.IsZero() && time.Since(stuck) >= t.Stuck:
		return false // it does not read
	case now.Sub(heard) >= 2*t.Ping+t.Ping/2:
		return false // two pings without a sign of life
	case now.Sub(heard) >= t.Ping && now.Sub(l.pinged) >= t.Ping:
		l.mute = heard.Before(l.pinged)
		l.pinged = now
		l.post(newFrame(), frames.Ping)
	}
	return true
}

// needsRefresh reports whether the link's token or signature expires soon or is void, or the SDK would not send the signature
// again. C++ ignores the push before it is ready. p.mu must be locked.
func (l *link) needsRefresh(now time.Time, wall domain.Time) bool {
	if now.Before(l.refreshAfter) {
		return false
	}
	if l.stale {
		return true
	}
	if l.shown.generation == 0 {
		ready := l.process.health != fleet.Unheard || l.process.settled
		ending := l.shown.expires != 0 && l.shown.expires.Sub(wall) <= signatureReplaced
		return ready && (ending || l.shown.fleeting)
	}
	// The processes of a compute share a token: spread the refreshes, so that they do not all reconnect at the same moment.
	config := l.process.server.engine.CellConfig()
	overlap := config.Hosting.TokenReplaced()
	later := time.Duration(l.id%64) * overlap / 256
	return l.shown.expires.Sub(wall) <= overlap-later
}

func (l *link) settle() {
	p := l.process
	if err := p.server.engine.Do(p.server.ctx, &hosting.SettleProcess{Process: p.key}); err != nil {
		p.server.log.Warn("the readiness of a game server could not be recorded", "process", p.key, "error", err)
		return
	}
	p.learn()
}

// expel closes the connections of a process that has ended and is still connected. A process that counted as crashed and returned
// is then refused for a while.
func (p *process) expel() {
	var links []*link
	err := p.look(func(now fleet.Process, ok bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.exitBy, p.evictBy = time.Time{}, time.Time{}
		if !hasEnded(now, ok) {
			p.ended = false // a new process uses the id on the same connection
			return
		}
		if p.evicted {
			p.banned = p.server.now().Add(p.server.config.Periods.Ban)
			p.evicted = false // if the process connects after that, it is asked again
		}
		links = append(links, p.links...)
	})
	if err != nil {
		return // the engine has stopped; so will the links
	}
	for _, l := range links {
		l.dismiss(closeNormal)
	}
}
