package agentlink

import (
	"time"

	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/steady"
)

// watch periodically checks all connections.
func (s *Server) watch() {
	tick := time.NewTicker(s.config.Periods.Watch)
	defer tick.Stop()
	kept := time.Now()
	for {
		select {
		case <-tick.C:
			now := time.Now()
			if now.Sub(kept) >= keepEvery {
				kept = now
				s.running.Go(func() { s.keepHosts(now) })
			}
			for _, l := range s.links() {
				l.check(now)
			}
		case <-s.stopping.Done():
			return
		}
	}
}

// check pings a silent connection, and ends one that is dead, stuck, or was superseded long ago.
func (l *link) check(now time.Time) {
	defer l.server.config.Panics.Confine(panicDoor, l.drop)
	l.checkPolicies()
	t := &l.server.config.Periods
	heard := steady.Time(l.heard.Load())
	l.mu.Lock()
	stuck := !l.writing.IsZero() && now.Sub(l.writing) >= t.Stuck
	old := !l.superseded.IsZero() && now.Sub(l.superseded) >= t.Superseded
	ping := now.Sub(heard) >= t.Ping && now.Sub(l.pinged) >= t.Ping
	if ping {
		l.pinged = now
	}
	l.mu.Unlock()
	switch {
	case stuck, now.Sub(heard) >= 2*t.Ping+t.Ping/2:
		l.drop()
	case old:
		l.dismiss(closeNormal)
	case ping:
		l.send(frames.Ping, nil)
	}
}
