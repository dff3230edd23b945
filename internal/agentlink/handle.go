package agentlink

import (
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/exit"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/frames"
)

// handle executes a request and answers it.
func (l *link) handle(message []byte) {
	s := l.server
	began := time.Now()
	request, action, id, err := agentproto.DecodeRequest(message)
	if errors.Is(err, agentproto.ErrGarbage) {
		s.counters.garbage.Add(1)
		s.log.Debug("a host agent sent a message that cannot be answered", "compute", l.compute().name, "error", err)
		return
	}
	if err != nil {
		s.calls.Done(action, callstats.OfStatus(400), began)
		l.fail(action, id, 400, err.Error())
		return
	}
	answer, err := l.carryOut(request)
	if err != nil {
		status, text := answerStatus(err)
		if status == 500 {
			s.log.Error("a host agent's request failed", "compute", l.compute().name, "action", action, "error", err)
		}
		s.calls.Done(action, callstats.OfStatus(status), began)
		l.fail(action, id, status, text)
		return
	}
	text, err := agentproto.EncodeAnswer(action, id, answer)
	if err != nil {
		s.log.Error("an answer to a host agent could not be written", "action", action, "error", err)
		return
	}
	s.calls.Done(action, callstats.OK, began)
	l.send(frames.Text, text)
}

func (l *link) fail(action, id string, status int, message string) {
	if text, err := agentproto.EncodeFailure(action, id, status, message); err == nil {
		l.send(frames.Text, text)
	}
}

// failure is an error with a status of its own.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return f.text }

// answerStatus translates an error for an agent, which retries a request unless the status is 400 or 401.
func answerStatus(err error) (int, string) {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.status, f.text
	}
	r, ok := errors.AsType[*domain.Refusal](err)
	if !ok {
		return 500, "the service cannot do this now"
	}
	switch r.Reason {
	case domain.Invalid:
		return 400, r.Detail
	case domain.NotFound:
		return 404, r.Detail
	case domain.NotReady:
		return 412, r.Detail
	case domain.Overloaded, domain.LimitExceeded, domain.NodeLost:
		return 429, r.Detail
	}
	return 400, r.Detail
}

// carryOut returns the fields of the answer.
func (l *link) carryOut(request agentproto.Request) (any, error) {
	switch r := request.(type) {
	case *agentproto.SendHeartbeat:
		return l.heartbeat(r)
	case *agentproto.DescribeRuntimeConfiguration:
		return l.runtimeConfiguration()
	case *agentproto.NotifyServerProcessTermination:
		return nil, l.processEnded(r)
	case *agentproto.GetFleetRoleCredentials:
		return nil, &failure{400, "this installation has no credentials of fleet roles"}
	}
	if !l.native {
		return nil, &failure{400, fmt.Sprintf("%s is for agents that connect with AgentKind=native&AgentProto=1", request.Action())}
	}
	switch r := request.(type) {
	case *agentproto.AgentHello:
		if l.host != "" {
			return l.helloHost(r)
		}
		return l.hello()
	case *agentproto.GetServerToken:
		return l.serverToken()
	case *agentproto.SendOutput:
		return nil, l.output(r)
	case *agentproto.RequestLogUpload:
		return l.logUpload(r)
	}
	return nil, &failure{404, "the service has not asked for this"}
}

// heartbeat returns what the agent should do with its processes.
func (l *link) heartbeat(r *agentproto.SendHeartbeat) (*agentproto.HeartbeatAnswer, error) {
	answer := &agentproto.HeartbeatAnswer{Status: agentproto.OrderActive, UnhealthyProcesses: []string{}, UnregisteredProcesses: []string{}}
	l.leaving.Store(r.Status == agentproto.Terminated)
	at := l.compute()
	l.report.Store(&agentproto.Report{Host: l.host, Fleet: at.fleet, Compute: at.name, Metrics: r.Metrics, Launches: r.Launches})
	l.tellLaunches(r.Launches)
	l.interrupt(r.Status == agentproto.Interrupted)
	l.lookForRival(time.Now())
	if at.fleet == "" {
		answer.Status, answer.UnregisteredProcesses = agentproto.OrderPending, append(answer.UnregisteredProcesses, r.ProcessList...)
		return answer, nil
	}
	return answer, l.server.engine.Read(l.server.ctx, func(v *cell.View) error {
		f, ok := v.Fleet(at.fleet)
		_, registered := v.Compute(at.fleet, at.name)
		switch {
		case ok && registered && f.Status != fleet.Deleting:
		case l.host != "": // it will be told of its next fleet
			answer.Status = agentproto.OrderPending
		default:
			answer.Status = agentproto.OrderTerminating
		}
		now := domain.TimeOf(l.server.engine.Now())
		for _, id := range r.ProcessList {
			p, known := v.Process(l.key(id))
			switch {
			case !known:
				answer.UnregisteredProcesses = append(answer.UnregisteredProcesses, id)
			case l.outlived(&p, now):
				answer.UnhealthyProcesses = append(answer.UnhealthyProcesses, id)
			}
		}
		return nil
	})
}

// interrupt drains a compute whose agent reports that its machine will be taken away. The agent reports it in each heartbeat from then
// on.
func (l *link) interrupt(is bool) {
	at := l.at.Load()
	switch {
	case !is:
		l.interrupted = nil
		return
	case at.fleet == "" || l.interrupted == at:
		return
	}
	if err := l.server.engine.Do(l.server.ctx, &hosting.InterruptCompute{Fleet: at.fleet, Compute: at.name}); err != nil {
		l.server.log.Warn("a host is about to be reclaimed and could not be drained: the service tries again with the next heartbeat", "compute", at.name, "error", err)
		return
	}
	l.interrupted = at
}

func (l *link) key(process string) fleet.Key {
	return fleet.Key{Fleet: l.compute().fleet, Compute: l.compute().name, Process: process}
}

// outlived reports whether a running process has ended according to the service. A process that ended normally is given time to exit.
func (l *link) outlived(p *fleet.Process, now domain.Time) bool {
	return p.State == fleet.Ended && (p.EndReason != fleet.EndedNormally || now.Sub(p.EndedAt) >= l.server.config.Periods.Exit)
}

func (l *link) runtimeConfiguration() (*agentproto.RuntimeConfiguration, error) {
	var f fleet.Fleet
	err := l.server.engine.Read(l.server.ctx, func(v *cell.View) error {
		var ok bool
		if f, ok = v.Fleet(l.compute().fleet); !ok {
			return domain.Refuse(domain.NotFound, "fleet %s not found", l.compute().fleet)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !l.native { // it does not download builds
		return runtimeOf(&f), nil
	}
	return l.server.workOf(&f), nil
}

// runtimeOf returns the runtime configuration of a fleet; without one, an agent runs nothing.
func runtimeOf(f *fleet.Fleet) *agentproto.RuntimeConfiguration {
	x := &agentproto.RuntimeConfiguration{ServerProcesses: []agentproto.ServerProcess{}}
	if f.Runtime == nil {
		return x
	}
	x.GameSessionActivationTimeoutSeconds = int(f.Runtime.ActivationTimeout / time.Second)
	x.MaxConcurrentGameSessionActivations = int(f.Runtime.ActivationsMax)
	for _, launch := range f.Runtime.Launches {
		x.ServerProcesses = append(x.ServerProcesses, agentproto.ServerProcess{LaunchPath: launch.Path, Parameters: launch.Parameters, ConcurrentExecutions: int(launch.Copies)})
	}
	return x
}

// workOf returns the runtime configuration of a fleet with its build, for agents that download builds.
func (s *Server) workOf(f *fleet.Fleet) *agentproto.RuntimeConfiguration {
	x := runtimeOf(f)
	if f.Managed == nil || f.Managed.Manifest == "" {
		return x // the files are already on the hosts
	}
	x.Build = &agentproto.Build{BuildID: f.Managed.Build, Digest: f.Managed.Manifest}
	if s.config.BuildURL != nil {
		x.Build.URL = s.config.BuildURL(f.Managed.Manifest)
	}
	return x
}

// processEnded ends a server process whose end the agent has observed.
func (l *link) processEnded(r *agentproto.NotifyServerProcessTermination) error {
	cmd := hosting.ReportExit{Process: l.key(r.ProcessID), Event: string(r.EventCode), Exit: exit.Report{Reason: string(r.TerminationReason)}}
	if x := r.Exit; x != nil {
		cmd.Exit.Signal, cmd.Exit.CoreFile = x.Signal, x.CoreFile
		cmd.Exit.PeakMemory, cmd.Exit.Memory, cmd.Exit.At = x.PeakMemoryBytes, x.MemoryBytes, domain.Time(x.EndedMillis)
		cmd.Exit.Output = excerpt.End(x.LastOutput, exit.OutputMax)
		if x.Code != nil {
			cmd.Exit.HasCode, cmd.Exit.Code = true, int32(*x.Code)
		}
	}
	return l.server.engine.Do(l.server.ctx, &cmd)
}

// hello returns what the service knows about this host.
func (l *link) hello() (*agentproto.HelloAnswer, error) {
	s := l.server
	answer := &agentproto.HelloAnswer{
		FleetID: l.compute().fleet, ComputeName: l.compute().name, SDKEndpoint: s.config.SDKEndpoint,
		HeartbeatMillis: s.config.Periods.Heartbeat.Milliseconds(),
	}
	return answer, s.engine.Read(s.ctx, func(v *cell.View) error {
		x, ok := v.Compute(l.compute().fleet, l.compute().name)
		if !ok {
			return domain.Refuse(domain.NotFound, "compute %s not found in fleet %s", l.compute().name, l.compute().fleet)
		}
		answer.Location = x.Location
		return nil
	})
}

func (l *link) serverToken() (*agentproto.ServerToken, error) {
	s := l.server
	if l.compute().fleet == "" {
		return nil, domain.Refuse(domain.NotReady, "host %s serves no fleet", l.host)
	}
	cmd := hosting.IssueToken{Fleet: l.compute().fleet, Compute: l.compute().name}
	if err := s.engine.Do(s.ctx, &cmd); err != nil {
		return nil, err
	}
	return &agentproto.ServerToken{
		FleetID: cmd.Fleet, ComputeName: cmd.Compute, ExpirationTimestamp: cmd.Expires.Std().Unix(),
		AuthToken: s.config.Secret.ProcessToken(cmd.Fleet, cmd.Compute, cmd.Registered.Registration, cmd.Generation),
	}, nil
}
