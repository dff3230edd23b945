package agent

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/agent/output"
	"github.com/musterhq/muster/internal/agent/process"
	"github.com/musterhq/muster/internal/agent/state"
	"github.com/musterhq/muster/internal/agentproto"
)

// adopt takes over the processes of the previous agent. For a process that no longer runs, it reports an end with unknown status and ends what
// the process left behind.
func (a *Agent) adopt(before state.State) {
	var ending []*server
	for _, one := range before.Processes {
		s := &server{
			id: one.ID, spec: agentproto.ServerProcess{LaunchPath: one.LaunchPath, Parameters: one.Parameters}, slot: one.Slot, dir: one.Dir, build: one.Build, ports: one.Ports,
			started: one.Started, registered: one.Registered, session: one.Session, logPaths: one.LogPaths, reason: one.Reason, doubtful: one.Registered && one.Session == "",
			log: output.New(a.logDir(one.ID), a.config.Output), retiring: time.Now(), // until the wanted set is known; nothing is ended before that
		}
		if one.Record.PID == 0 { // it was about to be started; it is unknown whether it was
			a.config.Groups.Sweep(one.ID, "")
			a.note(s, process.Exit{At: time.Now()})
			continue
		}
		p, err := a.config.Groups.Adopt(one.ID, one.Record)
		if err != nil {
			a.config.Log.Warn("server process ended while no agent was running", "process", one.ID, "pid", one.Record.PID)
			a.note(s, process.Exit{At: time.Now()})
			a.noteLogs(s)
			continue
		}
		a.config.Log.Info("server process adopted", "process", one.ID, "pid", one.Record.PID, "game_session", one.Session)
		s.process = p
		a.running[s.id] = s
		a.pool.Hold(slices.Collect(maps.Values(s.ports))...)
		a.adoptAgones(s)
		if s.reason != "" {
			ending = append(ending, s)
		}
	}
	for _, s := range ending { // as the previous agent did; only now, because it saves the state, which must have all processes
		a.end(s, s.reason)
	}
}

// sorted returns the running processes by id.
func (a *Agent) sorted() []*server {
	return slices.SortedFunc(maps.Values(a.running), func(x, y *server) int { return strings.Compare(x.id, y.id) })
}
