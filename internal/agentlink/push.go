package agentlink

import (
	"reflect"
	"strconv"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
)

// follow handles committed events. It must not block: work that may block becomes a task of a link.
func (s *Server) follow(c engine.Committed) {
	if c.Gap {
		for _, l := range s.links() {
			l.enqueue((*link).lookAgain)
		}
	}
	for _, event := range c.Events {
		switch e := event.Event.(type) {
		case *hosting.ProcessActivated:
			if l := s.current(compute{e.Process.Fleet, e.Process.Compute}); l != nil {
				l.push(registered(e.Process.Process, e.LogPaths))
			}
		case *hosting.GameSessionActivated:
			s.activated(e.ID)
		case *hosting.ProcessEnded:
			s.endedFor(e)
		case *hosting.FleetChanged:
			s.fleetChanged(&e.Fleet)
		case *hosting.ComputeRegistered:
			s.boundHost(&e.Compute)
			for _, l := range s.linksOf(compute{e.Compute.FleetID, e.Compute.Name}) {
				if l.host == "" && l.shown.Registration != e.Compute.Registration {
					l.drop()
				}
			}
		case *hosting.ComputeRemoved:
			switch l := s.current(compute{e.Fleet, e.Name}); {
			case l == nil:
			case l.host != "":
				s.settleHost(l.host)
			default:
				l.drain("the compute was deregistered")
			}
		case *hosting.TokenIssued:
			s.tokensVoid(e)
		case *hosts.HostChanged:
			if e.Host.Revoked != 0 {
				s.settleHost(e.Host.ID)
			}
		case *capacity.HostAssigned:
			s.settleHost(e.Assignment.Host)
		case *capacity.HostReleasing:
			s.settleHost(e.Host)
		case *capacity.HostReleased:
			s.settleHost(e.Host)
		}
	}
}

// boundHost makes a host that is bound to a fleet check its status after it became a compute there. Hosts for fleets of builds do so when they are
// assigned.
func (s *Server) boundHost(c *fleet.Compute) {
	for _, l := range s.links() {
		if l.host != "" && l.name == c.Name && l.compute().fleet == "" {
			l.enqueue((*link).settle)
		}
	}
}

func registered(process string, logPaths []string) *agentproto.NotifyProcessRegistered {
	if len(logPaths) == 0 {
		logPaths = agentproto.NoLogPaths
	}
	return &agentproto.NotifyProcessRegistered{ProcessID: process, LogPaths: logPaths}
}

// activated tells the agent which game session a process hosts.
func (s *Server) activated(id session.ID) {
	var g session.GameSession
	var ok bool
	err := s.engine.ReadHere(s.ctx, func(v *cell.View) error { g, ok = v.GameSession(id); return nil })
	if err != nil || !ok {
		return
	}
	if l := s.current(compute{g.FleetID, g.ComputeName}); l != nil {
		l.push(sessionOf(&g))
	}
}

func sessionOf(g *session.GameSession) *agentproto.NotifyGameSessionActivated {
	return &agentproto.NotifyGameSessionActivated{ProcessID: g.ProcessID, GameSessionID: g.ID.ARN(g.Region)}
}

// endedFor makes the agent end a process that the service has given up and that may still be running. An agent that reported the end itself no longer
// knows the process and ignores this.
func (s *Server) endedFor(e *hosting.ProcessEnded) {
	reason := agentproto.CustomerInitiated
	switch e.Reason {
	case fleet.EndedNormally, fleet.EndedReplaced:
		return // it exits on its own, or another process has its id
	case fleet.EndedUnhealthy:
		reason = agentproto.TerminatedUnhealthy
	case fleet.EndedForced, fleet.EndedActivationLate:
		reason = agentproto.ForceTerminated
	case fleet.EndedNeverReady:
		reason = agentproto.ReadyTimeout
	case fleet.EndedCrashed:
		reason = agentproto.Crashed
	}
	if l := s.current(compute{e.Process.Fleet, e.Process.Compute}); l != nil {
		l.push(&agentproto.ForceExitServerProcess{ProcessID: e.Process.Process, TerminationReason: reason})
	}
}

// fleetChanged sends native agents the runtime configuration of their fleet; the official agent polls it.
func (s *Server) fleetChanged(f *fleet.Fleet) {
	for _, l := range s.links() {
		if l.compute().fleet != f.ID || s.current(l.compute()) != l {
			continue
		}
		if f.Status == fleet.Deleting && l.host == "" { // a joined host is released instead
			l.drain("the fleet is being deleted")
		} else if l.native {
			l.push(&agentproto.UpdateRuntimeConfiguration{RuntimeConfiguration: *s.workOf(f)})
		}
	}
}

// drain tells the agent to start nothing more and to end when its processes have ended.
func (l *link) drain(why string) {
	if l.native {
		l.push(&agentproto.DrainCompute{Reason: why})
	} else {
		l.push(&agentproto.StartComputeTermination{})
	}
}

// resume ends the drain of an agent whose compute was deregistered and has been registered again.
func (l *link) resume() {
	stays, at := false, l.compute()
	_ = l.server.engine.ReadHere(l.server.ctx, func(v *cell.View) error { // on an error the engine has stopped
		f, ok := v.Fleet(at.fleet)
		_, registered := v.Compute(at.fleet, at.name)
		stays = ok && registered && f.Status != fleet.Deleting
		return nil
	})
	if stays {
		l.push(&agentproto.DrainCompute{Cancel: true})
	}
}

// tokensVoid closes connections that were authenticated with a token that is now void, or sends their agents the new token.
func (s *Server) tokensVoid(e *hosting.TokenIssued) {
	if e.Void == 0 || e.Void+1 != e.Generation {
		return // only RotateToken voids the previous token
	}
	for _, l := range s.linksOf(compute{e.Fleet, e.Compute}) {
		switch {
		case l.host != "":
			l.enqueue((*link).renew)
		case l.shown.Generation > e.Void:
		case e.KeepLinks:
			l.push(&agentproto.RefreshConnection{
				RefreshConnectionEndpoint: s.config.Endpoint, ExpirationTime: strconv.FormatInt(e.Expires.Std().Unix(), 10),
				AuthToken: s.config.Secret.ProcessToken(e.Fleet, e.Compute, l.shown.Registration, e.Generation),
			})
		default:
			s.log.Info("a host agent's connection was closed: the auth token of its compute was replaced", "compute", l.compute().name)
			l.drop()
		}
	}
}

// renew makes the agent of a host request another token for its server processes.
func (l *link) renew() {
	if x, err := l.server.standing(l.host); err == nil && x.at == l.compute() {
		l.push(&agentproto.UpdateHost{HelloAnswer: *l.server.helloOf(&x)})
	}
}

// pushOwed tells an agent that has just connected or missed events about its processes. All of these pushes may be repeated.
func (l *link) pushOwed() {
	s := l.server
	if s.current(l.compute()) != l || l.compute().fleet == "" {
		return
	}
	var processes []fleet.Process
	var games []session.GameSession
	var f fleet.Fleet
	err := s.engine.ReadHere(s.ctx, func(v *cell.View) error {
		f, _ = v.Fleet(l.compute().fleet)
		processes = v.ProcessesOn(l.compute().fleet, l.compute().name)
		for i := range processes {
			if g, ok := v.Hosting(processes[i].Key); ok {
				games = append(games, g)
			}
		}
		return nil
	})
	if err != nil {
		return // the engine has stopped; so will the link
	}
	for i := range processes {
		if p := &processes[i]; p.State == fleet.ProcessReady {
			l.push(registered(p.Key.Process, p.LogPaths))
		}
	}
	for i := range games {
		if games[i].Status != session.Activating {
			l.push(sessionOf(&games[i]))
		}
	}
	if l.native {
		l.pushRuntime(f)
	}
}

// pushRuntime tells the agent its runtime configuration. If it has changed meanwhile, follow may already have pushed the newer one, so that one is
// pushed again.
func (l *link) pushRuntime(f fleet.Fleet) {
	s := l.server
	for {
		l.push(&agentproto.UpdateRuntimeConfiguration{RuntimeConfiguration: *s.workOf(&f)})
		before := f
		err := s.engine.ReadHere(s.ctx, func(v *cell.View) error { f, _ = v.Fleet(l.compute().fleet); return nil })
		if err != nil || reflect.DeepEqual(f.Runtime, before.Runtime) && reflect.DeepEqual(f.Managed, before.Managed) {
			return // on an error the engine has stopped; so will the link
		}
	}
}

// lookAgain does what the missed events would have caused.
func (l *link) lookAgain() {
	if l.host != "" {
		l.settle()
	} else if l.server.voidNow(l) {
		l.drop()
		return
	}
	l.pushOwed()
}
