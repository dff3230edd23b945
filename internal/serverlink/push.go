package serverlink

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/frames"
)

// Pushes follow from committed events and, for a process that connects, from the state; whichever comes first causes the push.

// follow handles committed events. It must not block: work that may block becomes a task of a link.
func (s *Server) follow(c engine.Committed) {
	if c.Gap {
		s.missed()
	}
	for _, event := range c.Events {
		switch e := event.Event.(type) {
		case *hosting.GameSessionCreated:
			s.task(e.Process, func(l *link) { l.prompt(e.ID, e.Placement) })
		case *hosting.ProcessConnected:
			if e.Node != 0 {
				s.connected(e.Process)
			}
		case *hosting.ProcessTerminationAsked:
			s.task(e.Process, func(l *link) { l.pushTermination(e.Time) })
		case *hosting.ProcessEnded:
			s.processEnded(e)
		case *matchmaking.HostedChanged:
			s.hostedChanged(e)
		case *hosting.ComputeRegistered:
			s.registered(e)
		case *hosting.TokenIssued:
			s.tokensVoid(e)
		}
	}
}

// task adds a task to the current link of a process, if the process is connected to this node.
func (s *Server) task(key fleet.Key, do func(*link)) {
	if p := s.known(key); p != nil {
		if l := p.currentLink(); l != nil {
			l.enqueueOwn(do)
		}
	}
}

// pushOwed sends the pushes that are owed, according to the state, to a process that has just connected or missed events.
func (s *Server) pushOwed(p *process, l *link) {
	var hosted session.GameSession
	var hosting bool
	var now fleet.Process
	var matched matchmaking.Hosted
	err := s.engine.ReadHere(s.ctx, func(v *cell.View) error {
		hosted, hosting = v.Hosting(p.key)
		if hosting {
			matched, _ = v.Hosted(hosted.ID)
		}
		now, _ = v.Process(p.key)
		return nil
	})
	if err != nil {
		return // the engine has stopped; so will the link
	}
	if hosting && !hosted.Prompted && hosted.Status == session.Activating {
		l.enqueueOwn(func(l *link) { l.prompt(hosted.ID, hosted.Placement) })
	}
	if matched.Updates > matched.Told {
		l.enqueueOwn(func(l *link) { l.pushUpdate(&matched) })
	}
	if now.State != fleet.Ended && now.TerminateBy != 0 {
		l.enqueueOwn(func(l *link) { l.pushTermination(now.TerminationTime) })
	}
}

// prompt sends the process its game session. The journal records this before the first byte is sent, so the push is sent at most once, because
// the SDKs start the game again for each copy. If the connection breaks, the service cannot know whether the push arrived, and the activation
// timeout applies.
func (l *link) prompt(id session.ID, placement string) {
	if l.tryPrompt(id, placement) != nil { // perhaps because too much waits
		l.process.server.reports.Make(func() error { return l.tryPrompt(id, placement) })
	}
}

func (l *link) tryPrompt(id session.ID, placement string) (err error) {
	p := l.process
	s := p.server
	on := p.currentLink()
	if on == nil {
		return nil // still owed; the next connection receives it
	}
	ctx, span := l.beginPush(id, placement)
	defer func() { span.EndWith(err) }()
	cmd := hosting.PromptGameSession{Process: p.key, Game: id}
	if !on.node.IsZero() {
		cmd.Link = on.id
	}
	if err = s.engine.Do(ctx, &cmd); err != nil {
		s.log.Debug("a game session could not be pushed to its game server", "process", p.key, "game_session", id, "error", err)
		return err
	}
	g := &cmd.Prompted
	push := createGameSession{
		id: g.ID.ARN(g.Region), name: g.Name, playersMax: int(g.PlayersMax), ipAddress: g.IPAddress, dnsName: g.DNSName,
		port: int(g.Port), data: g.Data, matchmaker: g.MatchmakerData, properties: make([]property, len(g.Properties)),
	}
	for i, x := range g.Properties {
		push.properties[i] = property{x.Key, x.Value}
	}
	b := newFrame()
	*b = appendCreateGameSession(*b, &push)
	p.push(b)
	return nil
}

// push writes a push on the current connection.
func (p *process) push(b *[]byte) {
	p.server.counters.pushes.Add(1)
	if l := p.currentLink(); l != nil {
		l.send(b, frames.Text)
	} else {
		putFrame(b)
	}
}

// terminationAhead is the shortest time to a deadline that is sent. SDKs require a deadline in the future, and the real one may have passed while
// the service was down.
const terminationAhead = 10 * time.Second

// pushTermination sends the termination push once per current connection. For a process that has just connected, both the state and a subsequent
// event may cause it.
func (l *link) pushTermination(deadline domain.Time) {
	p := l.process
	if !p.noteEnd(deadline) {
		return
	}
	b := newFrame()
	*b = appendTerminateProcess(*b, max(deadline, domain.TimeOf(p.server.engine.Now()).Add(terminationAhead)))
	p.push(b)
}

// noteEnd records that the current connection is asked to end, and reports whether it was not asked before.
func (p *process) noteEnd(deadline domain.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil || p.current.endBy == deadline {
		return false
	}
	p.current.endBy = deadline
	return true
}

// refresh pushes a RefreshConnection with a token that expires later than this link's. docs/spec/server-sdk.md#refresh-connection.
func (l *link) refresh() {
	p := l.process
	s := p.server
	cmd := hosting.IssueToken{Fleet: p.key.Fleet, Compute: p.key.Compute}
	if err := s.engine.Do(s.ctx, &cmd); err != nil {
		s.log.Warn("a game server's auth token could not be renewed; the service tries again", "process", p.key, "error", err)
		return
	}
	if cmd.Generation <= l.shown.generation {
		return // the token is still the same: try again later
	}
	if err := s.engine.Do(s.ctx, &hosting.RefreshProcess{Process: p.key, Begin: true}); err != nil {
		s.log.Debug("a game server's connection could not be refreshed yet; the service tries again", "process", p.key, "error", err)
		return // it would miss its game session: try again later
	}
	// A newer connection made meanwhile must not be asked to open another one.
	if !p.refreshes(l) {
		l.endRefresh()
		return
	}
	s.counters.pushes.Add(1)
	b := newFrame()
	*b = appendRefreshConnection(*b, l.endpoint, s.config.Secret.ProcessToken(p.key.Fleet, p.key.Compute, cmd.Registered.Registration, cmd.Generation))
	l.send(b, frames.Text)
}

// refreshes records that l is asked to open another connection, if it is still the current one.
func (p *process) refreshes(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != l {
		return false
	}
	p.refreshing, p.refreshed = p.server.now(), l
	return true
}

// changedOver reports whether a refresh is over: another connection exists and the previous one is closed, which Go does after five seconds
// without sending; or no other connection was opened in time. p.mu must be locked.
func (p *process) changedOver(now time.Time) bool {
	switch {
	case p.refreshing.IsZero():
		return false
	case p.current != p.refreshed && len(p.links) == 1:
		return true
	}
	return now.Sub(p.refreshing) >= p.server.config.Periods.ChangeOver
}

// endRefresh makes the process available for game sessions again.
func (l *link) endRefresh() {
	p := l.process
	if err := p.server.engine.Do(p.server.ctx, &hosting.RefreshProcess{Process: p.key}); err != nil {
		p.server.log.Warn("the end of a game server's change to a new connection could not be recorded; the service tries again", "process", p.key, "error", err)
		return // the next check tries again
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refreshing, p.refreshed = time.Time{}, nil
}

// processEnded schedules the end of the connections of a process that has ended.
func (s *Server) processEnded(e *hosting.ProcessEnded) {
	p := s.known(e.Process)
	if p == nil || e.Reason == fleet.EndedReplaced { // the process that replaced it uses these connections
		return
	}
	p.mu.Lock()
	p.ended = true
	now := s.now()
	switch e.Reason {
	case fleet.EndedNormally:
		p.exitBy = now.Add(s.config.Periods.Exit)
	case fleet.EndedWithCompute:
		// It was not asked to end yet: handled like one that has returned, below.
	case fleet.EndedCrashed:
		// It has only superseded connections, unless it survived and has returned.
	default:
		p.exitBy = now
	}
	p.mu.Unlock()
	if e.Reason == fleet.EndedWithCompute {
		s.task(e.Process, func(l *link) { l.evict() })
	}
}

// evict asks a process that counted as crashed and has returned to end: once per connection, with one deadline. A process that ended normally is
// left alone until its connections are closed. It reports whether l's process is such a survivor. docs/spec/server-sdk.md#lives.
func (l *link) evict() (survivor bool) {
	p := l.process
	s := p.server
	var tell bool
	var left time.Duration
	err := p.look(func(now fleet.Process, ok bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		over := hasEnded(now, ok)
		if !over {
			p.ended = false // the hint was late: a new process uses the id
		}
		survivor = over && p.exitBy.IsZero()
		tell = survivor && !l.evicted
		if tell {
			l.evicted = true
			if !p.evicted {
				p.evicted = true
				p.evictBy = s.now().Add(s.config.Periods.Evict)
			}
		}
		left = p.evictBy.Sub(s.now())
	})
	if err != nil {
		return false
	}
	if tell {
		s.log.Info("a game server that counted as crashed has come back; the service told it to end", "process", p.key)
		l.pushTermination(domain.TimeOf(s.engine.Now().Add(left)))
	}
	return survivor
}

// hasEnded reports whether a process has ended according to the core. A process that the core no longer has ended long ago.
func hasEnded(now fleet.Process, known bool) bool { return !known || now.State == fleet.Ended }
