package agentlink

import (
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/steady"
)

// This file has what agents say about the entries of their runtime configuration that do not run.

// launch is an entry of the runtime configuration of a fleet.
type launch struct{ fleet, path, parameters string }

// launchEvents bounds how often an agent whose entries change their trouble all the time writes to the journal.
var launchEvents = rate.PerSecond(0.2, 20)

var troubles = map[string]hosting.LaunchTrouble{
	agentproto.CauseBuild: hosting.BuildNotFetched, agentproto.CausePath: hosting.PathNotFound, agentproto.CauseNoStart: hosting.NotStarted,
	agentproto.CauseCrash: hosting.CrashesTooOften,
}

// tellLaunches writes a trouble to the fleet's events when it begins, or is another one than before. A crash is one when there were too many.
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
				continue // the next heartbeat has it, too
			}
			cmd := hosting.ReportLaunch{Fleet: at.fleet, Compute: at.name, Path: x.LaunchPath, Trouble: troubles[cause], Why: x.Reason}
			if err := l.server.engine.Do(l.server.ctx, &cmd); err != nil {
				l.server.log.Debug("what a host agent says of a launch was not written to the fleet's events", "fleet", at.fleet, "compute", at.name, "error", err)
				continue
			}
		}
		told[key] = cause
	}
	l.told = told
}

// Reports returns what the agents that are connected here said last.
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
