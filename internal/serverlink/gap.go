package serverlink

import (
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// missed checks every connection again, because this node has missed events.
func (s *Server) missed() {
	for _, l := range s.links() {
		l.enqueueOwn((*link).lookAgain)
	}
}

// lookAgain does what the missed events would have caused. The state does not tell whether an operator who replaced a token let its connections
// stay, so they are closed.
func (l *link) lookAgain() {
	p := l.process
	s := p.server
	p.mu.Lock()
	stale := l.stale
	p.mu.Unlock()
	if !stale && s.voidNow(l) {
		s.log.Info("a game server's connection was closed: the auth token of its compute was replaced", "process", p.key)
		l.drop()
		return
	}
	if p.currentLink() != l {
		return
	}
	var now fleet.Process
	var known bool
	if err := s.engine.ReadHere(s.ctx, func(v *cell.View) error { now, known = v.Process(p.key); return nil }); err != nil {
		return // the engine has stopped; so will the link
	}
	s.connected(p.key)
	if hasEnded(now, known) {
		reason := fleet.EndedWithCompute // for a process that has left memory: it was not asked to end
		if known {
			reason = now.EndReason
		}
		p.mu.Lock()
		noted := p.ended
		p.mu.Unlock()
		if !noted {
			s.processEnded(&hosting.ProcessEnded{Process: p.key, Reason: reason})
		}
	}
	s.pushOwed(p, l)
}
