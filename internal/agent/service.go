package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/agent/agones"
	"github.com/musterhq/muster/internal/agent/link"
	"github.com/musterhq/muster/internal/agent/process"
	"github.com/musterhq/muster/internal/agent/usage"
	"github.com/musterhq/muster/internal/agentproto"
)

const (
	// pollEvery is how often the agent requests the runtime configuration, in case a push was lost.
	pollEvery = 5 * time.Minute
	// heartbeatEvery is the heartbeat interval if the service specifies none.
	heartbeatEvery = 60 * time.Second
	// tokenSpare is the remaining life that a token for a new process must have.
	tokenSpare = 15 * time.Minute
	// unregisteredMax is after how many consecutive heartbeats in which the service does not know a process the process is ended, as in the official
	// agent.
	unregisteredMax = 8
)

// connect starts to use a new connection.
func (a *Agent) connect(hello agentproto.HelloAnswer) {
	if a.hello.HostID != "" && a.hello.FleetID != hello.FleetID { // the old fleet's processes retire
		a.told++
		a.want(agentproto.RuntimeConfiguration{})
	}
	a.connected, a.hello, a.asked, a.beat = true, hello, time.Time{}, time.Time{}
	a.since = time.Now()
	a.greeted++
	a.token = nil // it may belong to another compute or be revoked
	a.config.Log.Info("agent is connected", "fleet", hello.FleetID, "compute", hello.ComputeName, "location", hello.Location)
}

func (a *Agent) disconnect() {
	a.connected = false
	for _, s := range a.running {
		if s.registered && s.session == "" {
			s.doubtful = true
		}
		s.unregistered = 0
	}
}

// ask requests the runtime configuration and the token for server processes when they are due, one at a time.
func (a *Agent) ask(now time.Time) {
	if !a.connected || a.asking || a.hello.FleetID == "" {
		return
	}
	switch {
	case a.config.File == "" && now.Sub(a.asked) >= pollEvery:
		a.asked = now
		told := a.told
		conf := new(agentproto.RuntimeConfiguration)
		a.call(new(agentproto.DescribeRuntimeConfiguration), conf, func(err error) {
			if err != nil {
				a.asked = time.Now().Add(2*time.Second - pollEvery)
				a.config.Log.Warn("runtime configuration cannot be fetched: the agent asks again", "error", err)
				return
			}
			if a.told == told { // otherwise the answer may be older than a push that arrived meanwhile
				a.want(*conf)
			}
		})
	case a.token == nil || time.Unix(a.token.ExpirationTimestamp, 0).Sub(now) < tokenSpare:
		token, greeted := new(agentproto.ServerToken), a.greeted
		a.call(new(agentproto.GetServerToken), token, func(err error) {
			if err != nil {
				a.config.Log.Warn("token for server processes cannot be fetched: the agent asks again", "error", err)
				return
			}
			if a.greeted != greeted {
				return // it may be one for the former fleet, or revoked
			}
			a.token = token
			a.agones.Set(agones.Target{URL: a.hello.SDKEndpoint, Fleet: token.FleetID, Compute: token.ComputeName, Token: token.AuthToken})
		})
	}
}

// call sends a request and has the goroutine of Run handle its outcome. After a failure, the agent makes no requests for two seconds.
func (a *Agent) call(r agentproto.Request, answer agentproto.Answer, then func(error)) {
	a.asking = true
	ctx := a.context
	go func() {
		err := a.link.Call(ctx, r, answer)
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Second):
			}
		}
		a.do(func() {
			a.asking = false
			if errors.Is(err, link.ErrNotConnected) {
				a.asked = time.Time{}
				return
			}
			then(err)
		})
	}()
}

// take handles a push from the service.
func (a *Agent) take(push agentproto.Push) {
	switch p := push.(type) {
	case *agentproto.NotifyProcessRegistered:
		if s := a.running[p.ProcessID]; s != nil && (!s.registered || !slices.Equal(s.logPaths, p.LogPaths)) {
			s.registered, s.logPaths = true, p.LogPaths
			a.save()
		}
	case *agentproto.NotifyGameSessionActivated:
		if s := a.running[p.ProcessID]; s != nil {
			s.registered, s.session, s.doubtful = true, p.GameSessionID, false
			a.save()
		}
	case *agentproto.ForceExitServerProcess:
		reason := p.TerminationReason
		if !slices.Contains(agentproto.Reasons, reason) {
			reason = agentproto.NormalTermination
		}
		a.forceExit(p.ProcessID, reason)
	case *agentproto.ForceExitProcess:
		a.forceExit(p.ProcessID, agentproto.NormalTermination)
	case *agentproto.StartComputeTermination:
		a.drainBeforeTermination()
	case *agentproto.DrainCompute:
		switch {
		case a.interrupted && (p.Cancel || p.DeadlineMillis == 0 || time.UnixMilli(p.DeadlineMillis).After(a.deadline)): // the machine ends before that
		case p.Cancel && a.draining:
			a.endDrain()
		case !p.Cancel && p.DeadlineMillis == 0:
			a.drain(time.Time{}, p.Reason)
		case !p.Cancel:
			a.drain(time.UnixMilli(p.DeadlineMillis), p.Reason)
		}
	case *agentproto.UpdateRuntimeConfiguration:
		if a.config.File == "" {
			a.told++
			a.want(p.RuntimeConfiguration)
		}
	case *agentproto.UpdateHost:
		a.connect(p.HelloAnswer)
	case *agentproto.HostShared:
		a.config.Log.Warn("another agent uses the identity of this host and disconnects this agent: a copy of the state directory is on another machine. "+
			"Remove host.json from the state directory of the copy, and give its agent a join token", "host", a.hello.HostID, "state_dir", a.config.StateDir, "addresses", p.Addresses)
	case *agentproto.StartOutput:
		a.startStream(p)
	case *agentproto.StopOutput:
		if cancel := a.streams[p.StreamID]; cancel != nil {
			cancel()
		}
	}
}

func (a *Agent) forceExit(id string, reason agentproto.TerminationReason) {
	if s := a.running[id]; s != nil {
		a.endNow(s, reason)
	}
}

// reply sends a request whose answer is ignored.
func (a *Agent) reply(r agentproto.Request) {
	ctx := a.context
	go func() {
		if err := a.link.Call(ctx, r, nil); err != nil {
			a.config.Log.Warn("the service refused a message", "action", r.Action(), "error", err)
		}
	}()
}

// heartbeat sends a heartbeat when it is due.
func (a *Agent) heartbeat(now time.Time) {
	every := heartbeatEvery
	if a.hello.HeartbeatMillis > 0 {
		every = time.Duration(a.hello.HeartbeatMillis) * time.Millisecond
	}
	if !a.connected || now.Sub(a.beat) < every {
		return
	}
	a.beat = now
	m := a.describe(now)
	ctx := a.context
	go func() {
		answer := new(agentproto.HeartbeatAnswer)
		if err := a.link.Call(ctx, m, answer); err != nil {
			if ctx.Err() == nil {
				a.config.Log.Warn("heartbeat failed", "error", err)
			}
			return
		}
		a.do(func() { a.answered(m, answer) })
	}()
}

func (a *Agent) status() agentproto.Status {
	switch {
	case a.interrupted:
		return agentproto.Interrupted
	case a.draining:
		return agentproto.Terminating
	case a.order == agentproto.OrderPending:
		return agentproto.Initializing
	case a.order == agentproto.OrderInitializing:
		return agentproto.Activating
	}
	return agentproto.Active
}

// stateOf returns the state of a process for the service and for metrics.
func (a *Agent) stateOf(s *server) string {
	switch {
	case s.stopping:
		return agentproto.ProcessStopping
	case !s.retiring.IsZero() && a.wanted != nil:
		return processRetiring
	case s.registered:
		return agentproto.ProcessRunning
	}
	return agentproto.ProcessStarting
}

// describe returns a heartbeat.
func (a *Agent) describe(now time.Time) *agentproto.SendHeartbeat {
	m := &agentproto.SendHeartbeat{Status: a.status(), ProcessList: []string{}, HeartbeatTimeMillis: now.UnixMilli()}
	for _, s := range a.sorted() {
		s.measure(now)
		p := agentproto.ProcessState{
			ProcessID: s.id, PID: s.process.Record().PID, Port: s.ports[""], State: a.stateOf(s), CPUPercent: s.percent, MemoryBytes: s.used.Memory,
			StartedMillis: s.started.UnixMilli(),
		}
		if s.entry != nil {
			p.Restarts = s.entry.crash.Recent(now)
		}
		m.ProcessList = append(m.ProcessList, s.id)
		m.Processes = append(m.Processes, p)
	}
	for _, e := range a.entries {
		m.Launches = append(m.Launches, a.describeLaunch(e, now))
	}
	before := a.host
	a.host = usage.OfHost(a.config.LogDir)
	h := a.host
	m.Metrics = &agentproto.HostMetrics{
		CPUPercent: usage.CPUPercent(before, h), Load1: h.Load1, MemoryTotalBytes: h.Memory, MemoryUsedBytes: h.MemoryUsed, DiskTotalBytes: h.Disk, DiskFreeBytes: h.DiskFree,
		NetworkInBytes: h.NetworkIn, NetworkOutBytes: h.NetworkOut, DiskReadBytes: h.DiskRead, DiskWriteBytes: h.DiskWritten, DiskReadOps: h.DiskReads, DiskWriteOps: h.DiskWrites, OpenFiles: h.OpenFiles, PortsUsed: a.pool.Taken(), PortsFree: max(0, a.pool.Range().Len()-a.pool.Taken()),
		AgentMemoryBytes: h.AgentMemory,
	}
	return m
}

// processRetiring is the state of a process that is no longer in the wanted set: the service places no game session on it, and ends it once it has
// none.
const processRetiring = "Retiring"

func (e *entry) describe(now time.Time) agentproto.LaunchState {
	l := agentproto.LaunchState{
		LaunchPath: e.spec.LaunchPath, Parameters: e.spec.Parameters, Wanted: e.spec.ConcurrentExecutions, State: agentproto.LaunchRunning, Crashes: e.crash.Recent(now),
	}
	next := time.Duration(0)
	for slot, s := range e.slots {
		if s != nil {
			l.Running++
		} else if wait := e.crash.Wait(slot, now); wait > 0 && (next == 0 || wait < next) {
			next = wait
		}
	}
	if next > 0 {
		l.State, l.NextTryMillis = agentproto.LaunchBackingOff, now.Add(next).UnixMilli()
	}
	if e.crash.Failed(now) {
		l.State = agentproto.LaunchFailed
	}
	if l.State != agentproto.LaunchRunning {
		l.Cause, l.Reason = e.cause, agentproto.Text(e.reason)
	}
	return l
}

// measure samples the resource use of a process.
func (s *server) measure(now time.Time) {
	if s.process == nil {
		return
	}
	used := usage.OfProcesses(s.process.Record().PIDs())
	if past := now.Sub(s.usedAt); !s.usedAt.IsZero() && past > 0 && used.CPU >= s.used.CPU {
		s.percent = 100 * float64(used.CPU-s.used.CPU) / float64(past)
	}
	s.used, s.usedAt = used, now
}

// terminationTime is how long game sessions may go on after the service ends a compute. The official agent gives them as long.
const terminationTime = 6 * time.Minute

func (a *Agent) drainBeforeTermination() {
	a.drain(time.Now().Add(terminationTime), "the service ends this compute")
}

// answered handles the answer to a heartbeat.
func (a *Agent) answered(m *agentproto.SendHeartbeat, answer *agentproto.HeartbeatAnswer) {
	switch answer.Status {
	case agentproto.OrderTerminating:
		if !a.draining {
			a.drainBeforeTermination()
		}
	case agentproto.OrderTerminated:
		if !a.draining || a.deadline.IsZero() || a.deadline.After(time.Now()) {
			a.drain(time.Now(), "the service has ended this compute")
		}
	default:
		a.order = answer.Status
	}
	for _, id := range answer.UnhealthyProcesses {
		if s := a.running[id]; s != nil && !s.stopping {
			a.because(s, agentproto.TerminatedUnhealthy)
			go a.abort(s.process)
		}
	}
	for _, id := range m.ProcessList {
		s := a.running[id]
		if s == nil {
			continue
		}
		if !slices.Contains(answer.UnregisteredProcesses, id) {
			s.unregistered = 0
			if !s.registered {
				s.registered = true
				a.save()
			}
			continue
		}
		s.unregistered++
		if age := time.Since(s.started); !s.registered && !s.hosting() && s.unregistered >= unregisteredMax && age > a.config.StartTimeout {
			a.config.Log.Warn("server process has not called ProcessReady: it is ended", "process", id, "age", age.Round(time.Second))
			a.end(s, agentproto.SDKInitializationTimeout)
		}
	}
}

// abort ends a hanging process in a way that lets it write a core dump, and kills it if that does not end it.
func (a *Agent) abort(p *process.Process) {
	p.Abort()
	ctx, cancel := context.WithTimeout(context.Background(), a.config.KillTimeout)
	defer cancel()
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill()
	}
}
