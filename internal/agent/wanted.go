package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/agent/restart"
	"github.com/musterhq/muster/internal/agentproto"
)

// readFile reads the runtime configuration of Config.File if it has changed.
func (a *Agent) readFile() {
	if a.config.File == "" {
		return
	}
	info, err := os.Stat(a.config.File)
	if err == nil && info.ModTime().Equal(a.fileTime) {
		return
	}
	if err != nil {
		a.complain(err)
		return
	}
	text, err := os.ReadFile(a.config.File)
	if err != nil {
		a.complain(err)
		return
	}
	a.fileTime = info.ModTime()
	conf, err := ParseRuntime(text)
	if err != nil {
		a.complain(fmt.Errorf("%s: %w", a.config.File, err))
		return
	}
	a.want(conf)
}

// complain logs once why the wanted set cannot be read. The processes keep running unchanged.
func (a *Agent) complain(err error) {
	if text := err.Error(); text != a.problem {
		a.problem = text
		a.config.Log.Error("runtime configuration cannot be used: server processes stay as they are", "error", err)
	}
}

// ParseRuntime parses a runtime configuration in the format of the API and the AWS CLI.
func ParseRuntime(text []byte) (agentproto.RuntimeConfiguration, error) {
	var conf agentproto.RuntimeConfiguration
	if err := json.Unmarshal(text, &conf); err != nil {
		return conf, err
	}
	if conf.Build != nil {
		return conf, errors.New("the field Build: want none in a file, because launch paths are relative to --root")
	}
	total := 0
	for i, p := range conf.ServerProcesses {
		switch {
		case p.LaunchPath == "" || len(p.LaunchPath) > agentproto.LaunchBytes:
			return conf, fmt.Errorf("ServerProcesses[%d].LaunchPath: %d bytes; want 1 to %d", i, len(p.LaunchPath), agentproto.LaunchBytes)
		case len(p.Parameters) > agentproto.LaunchBytes:
			return conf, fmt.Errorf("ServerProcesses[%d].Parameters: %d bytes; want at most %d", i, len(p.Parameters), agentproto.LaunchBytes)
		case p.ConcurrentExecutions < 1 || p.ConcurrentExecutions > agentproto.ProcessesMax:
			return conf, fmt.Errorf("ServerProcesses[%d].ConcurrentExecutions: %d; want 1 to %d", i, p.ConcurrentExecutions, agentproto.ProcessesMax)
		}
		total += p.ConcurrentExecutions
	}
	if len(conf.ServerProcesses) > agentproto.LaunchesMax || total > agentproto.ProcessesMax {
		return conf, fmt.Errorf("ServerProcesses: %d entries with %d processes; want at most %d and %d", len(conf.ServerProcesses), total, agentproto.LaunchesMax, agentproto.ProcessesMax)
	}
	return conf, nil
}

// want makes conf the wanted set. Entries with the same launch path and parameters keep their processes and crash counts; processes without an entry
// retire.
func (a *Agent) want(conf agentproto.RuntimeConfiguration) {
	changed, err := a.wantBuild(conf.Build)
	if err != nil {
		a.complain(err)
		return
	}
	if a.wanted != nil && a.problem == "" && !changed && slices.Equal(a.wanted.ServerProcesses, conf.ServerProcesses) {
		a.wanted = &conf
		return
	}
	a.wanted, a.problem = &conf, ""
	before := a.entries
	a.entries = nil
	for _, spec := range conf.ServerProcesses {
		e := &entry{spec: spec, build: a.build.name(), crash: restart.New(a.config.Restart, rand.Float64)}
		if i := slices.IndexFunc(before, func(b *entry) bool { return b.build == e.build && same(b.spec, spec) }); i >= 0 {
			e.crash, e.cause, e.reason = before[i].crash, before[i].cause, before[i].reason
			if before[i].spec != spec {
				e.crash.Reset()
			}
			before = slices.Delete(slices.Clone(before), i, i+1)
		}
		a.entries = append(a.entries, e)
	}
	a.assign()
	a.beat = time.Time{} // report to the service at once
	a.config.Log.Info("runtime configuration is in force", "entries", len(a.entries), "processes", a.total())
}

func same(x, y agentproto.ServerProcess) bool {
	return x.LaunchPath == y.LaunchPath && x.Parameters == y.Parameters
}

// assign assigns the running processes to the slots of the wanted set. Processes with a game session come first, because a surplus process without
// one can retire at once.
func (a *Agent) assign() {
	now := time.Now()
	servers := a.sorted()
	slices.SortStableFunc(servers, func(x, y *server) int {
		return cmp.Or(first(x.stopping, y.stopping)*-1, first(x.session != "", y.session != ""), first(x.registered, y.registered), x.started.Compare(y.started))
	})
	for _, s := range servers {
		s.entry = nil
	}
	for _, e := range a.entries {
		var stay []*server
		for _, s := range servers {
			if s.entry == nil && s.build == e.build && same(s.spec, e.spec) && len(stay) < e.spec.ConcurrentExecutions {
				s.entry, s.retiring = e, time.Time{}
				stay = append(stay, s)
			}
		}
		e.fill(stay)
	}
	for _, s := range servers {
		if s.entry == nil && s.retiring.IsZero() {
			s.retiring = now
		}
	}
}

// fill puts processes into the slots. A process keeps its slot if possible, because its arguments may contain the slot number.
func (e *entry) fill(stay []*server) {
	e.slots = make([]*server, e.spec.ConcurrentExecutions)
	var others []*server
	for _, s := range stay {
		if s.slot < len(e.slots) && e.slots[s.slot] == nil {
			e.slots[s.slot] = s
		} else {
			others = append(others, s)
		}
	}
	for _, s := range others {
		s.slot = slices.Index(e.slots, nil)
		e.slots[s.slot] = s
	}
	for _, s := range stay {
		e.crash.Runs(s.slot, s.started)
	}
}

// first orders true before false.
func first(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// total returns how many processes are wanted.
func (a *Agent) total() (n int) {
	for _, e := range a.entries {
		n += e.spec.ConcurrentExecutions
	}
	return n
}

// mayStart reports whether new processes may be started at all.
func (a *Agent) mayStart(now time.Time) bool {
	if a.draining || a.order != agentproto.OrderActive && a.order != agentproto.OrderInitializing {
		return false
	}
	if a.config.Target == nil {
		return true
	}
	return a.connected && a.token != nil && now.Before(time.Unix(a.token.ExpirationTimestamp, 0)) // without the service, a process could not register
}

// reconcile starts processes that are wanted but not running. Retiring processes count, so that the host never runs more than it is meant to.
func (a *Agent) reconcile(now time.Time) {
	if !a.mayStart(now) {
		return
	}
	room := a.total() - len(a.running)
	for _, e := range a.entries {
		if e.build != "" && a.build.dir == "" {
			continue // the build is being downloaded
		}
		for slot := range e.slots {
			if room <= 0 {
				return
			}
			if e.slots[slot] == nil && e.crash.Wait(slot, now) == 0 {
				a.start(e, slot, now)
				room--
			}
		}
	}
}

// retire ends processes that no entry wants. It ends a process that no server SDK has registered at once. It reports a registered one to the service
// as retiring, and the service ends it once it has no game session. If the service does not, the agent ends it once it has been connected for the
// activation time of a game session, by when it would know of one.
func (a *Agent) retire(now time.Time) {
	known := a.wanted != nil
	for _, s := range a.running {
		if !known && !a.draining || s.retiring.IsZero() && !a.draining || s.stopping {
			continue
		}
		if s.retiring.IsZero() {
			s.retiring = now
		}
		wait := a.activation() + 30*time.Second
		switch {
		case a.draining && !a.deadline.IsZero() && now.After(a.deadline):
			a.end(s, agentproto.ComputeShuttingDown)
		case s.hosting() || s.doubtful && now.Sub(a.since) < time.Minute: // a new connection first reports the game sessions of all processes
		case !s.registered && a.settled(s):
			a.end(s, agentproto.NormalTermination)
		case a.connected && now.Sub(s.retiring) > wait && now.Sub(a.since) > wait: // before the connection, the service did not know that it retires
			a.end(s, agentproto.NormalTermination)
		}
	}
}

// settled reports whether the service has had time to report that a process is registered.
func (a *Agent) settled(s *server) bool {
	return a.config.Target == nil || a.connected && s.unregistered > 0
}

// activation returns how long a game session may take to activate.
func (a *Agent) activation() time.Duration {
	if a.wanted == nil || a.wanted.GameSessionActivationTimeoutSeconds <= 0 {
		return 5 * time.Minute // the API's default
	}
	return time.Duration(a.wanted.GameSessionActivationTimeoutSeconds) * time.Second
}

// drain stops starting processes. A deadline of zero means none.
func (a *Agent) drain(deadline time.Time, why string) {
	a.draining, a.deadline, a.beat = true, deadline, time.Time{}
	a.config.Log.Info("host is being drained: no server process starts, and those with a game session finish", "deadline", deadline, "reason", why)
}

// revoked ends all server processes, because the service no longer trusts this host and would not hear of what runs here.
func (a *Agent) revoked() {
	if !a.draining || a.deadline.IsZero() || a.deadline.After(time.Now()) {
		a.drain(time.Now(), "the service has revoked this host")
	}
}

func (a *Agent) endDrain() {
	a.draining, a.deadline, a.beat = false, time.Time{}, time.Time{}
	a.assign()
	for _, s := range a.running {
		if s.entry != nil {
			s.retiring = time.Time{}
		}
	}
	a.config.Log.Info("drain of the host has ended: server processes start again")
}
