package agentlink

import (
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/steady"
)

// This file handles agents' reports about entries of their runtime configuration that do not run.

// launch is an entry of the runtime configuration of a fleet.
type launch struct{ fleet, path, parameters string }

// launchEvents limits the journal events caused by an agent whose entries constantly change their problem.
var launchEvents = rate.PerSecond(0.2, 20)

var troubles = map[string]hosting.LaunchTrouble{
	agentproto.CauseBuild: hosting.BuildNotFetched, agentproto.CausePath: hosting.PathNotFound, agentproto.CauseNoStart: hosting.NotStarted,
	agentproto.CauseCrash: hosting.CrashesTooOften,
}

// tellLaunches writes a problem to the fleet's events when it begins or changes. A crash counts only if there were too many.
func (l *link) tellLaunches(states []agentproto.LaunchState) {
	at := l.compute()
	told := map[launch]string{}
	for i := range states {
		x := &states[i]
		key := launch{at.fleet, x.LaunchPath, x.Parameters}
		cause := x.Cause
		if at.fleet == "" || troubles[cause] == 0 || cause == agentproto.CauseCrash && x.State != agentproto.LaunchFailed {
			continue
		}
		if l.told[key] != cause {
			if !l.telling.Take(launchEvents, steady.Now()) {
				continue // the next heartbeat repeats it
			}
			cmd := hosting.ReportLaunch{Fleet: at.fleet, Compute: at.name, Path: x.LaunchPath, Trouble: troubles[cause], Why: x.Reason}
			if err := l.server.engine.Do(l.server.ctx, &cmd); err != nil {
				l.server.log.Debug("a host agent's report about a launch was not written to the fleet's events", "fleet", at.fleet, "compute", at.name, "error", err)
				continue
			}
		}
		told[key] = cause
	}
	l.told = told
}

// Reports returns the latest reports of the agents connected to this node.
func (s *Server) Reports() (all []*agentproto.Report) {
	for _, l := range s.links() {
		if r := l.report.Load(); r != nil && s.current(l.compute()) == l {
			said := *r
			said.Shared = s.sharers(l.host, time.Now())
			all = append(all, &said)
		}
	}
	return all
}
