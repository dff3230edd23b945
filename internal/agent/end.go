package agent

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/agent/link"
	"github.com/musterhq/muster/internal/agent/output"
	"github.com/musterhq/muster/internal/agent/process"
	"github.com/musterhq/muster/internal/agent/state"
	"github.com/musterhq/muster/internal/agentproto"
)

// await waits for a process's end and has it handled.
func (a *Agent) await(s *server) {
	go func() {
		<-s.process.Done()
		a.do(func() { a.ended(s, s.process.Exit()) })
	}()
}

// end asks a process to end, and kills it after Config.KillTimeout.
func (a *Agent) end(s *server, reason agentproto.TerminationReason) {
	if s.stopping {
		return
	}
	a.because(s, reason)
	if err := s.process.Terminate(); err != nil {
		a.config.Log.Error("server process cannot be signalled", "process", s.id, "error", err)
	}
	go func() {
		select {
		case <-s.process.Done():
		case <-time.After(a.config.KillTimeout):
			a.config.Log.Warn("server process does not end: it is killed", "process", s.id, "after", a.config.KillTimeout)
			a.kill(s)
		}
	}()
}

// endNow kills a process with all its children.
func (a *Agent) endNow(s *server, reason agentproto.TerminationReason) {
	a.because(s, reason)
	go a.kill(s)
}

func (a *Agent) kill(s *server) {
	if err := s.process.Kill(); err != nil {
		a.config.Log.Error("server process cannot be killed", "process", s.id, "error", err)
	}
}

// because records why the agent ends a process; only the first reason counts.
func (a *Agent) because(s *server, reason agentproto.TerminationReason) {
	s.stopping = true
	s.agones.Ending()
	if s.reason == "" {
		s.reason = reason
	}
	a.config.Log.Info("server process is ended", "process", s.id, "reason", s.reason)
	a.save()
}

// ended handles the end of a process.
func (a *Agent) ended(s *server, exit process.Exit) {
	delete(a.running, s.id)
	s.agones.Remove()
	a.leftovers = a.leftovers || s.build != ""
	a.pool.Release(time.Now(), slices.Collect(maps.Values(s.ports))...)
	crashed := s.reason == "" && exit.Known && exit.Crashed() || s.reason == agentproto.TerminatedUnhealthy || s.reason == agentproto.SDKInitializationTimeout
	failed := false
	if e := s.entry; e != nil {
		if s.slot < len(e.slots) && e.slots[s.slot] == s {
			e.slots[s.slot] = nil
		}
		failed = e.crash.Ended(s.slot, crashed, time.Now())
		if crashed {
			e.cause, e.reason = agentproto.CauseCrash, cmp.Or(string(s.reason), exit.Text())
		}
	}
	level := a.config.Log.Info
	if crashed {
		level = a.config.Log.Warn
	}
	level("server process ended", "process", s.id, "exit", exit.Text(), "lived", exit.At.Sub(s.started).Round(time.Millisecond), "game_session", s.session)
	if failed {
		a.config.Log.Error("server processes crash too often: the agent starts one at a time, at longer intervals", "path", s.spec.LaunchPath, "every", a.config.Restart.Probe)
	}
	a.note(s, exit)
	a.noteLogs(s)
	a.save()
}

// note queues the report of an end for the service.
func (a *Agent) note(s *server, exit process.Exit) {
	reason := s.reason
	if reason == "" {
		reason = agentproto.NormalTermination
		if exit.Crashed() {
			reason = agentproto.Crashed
		}
	}
	if a.counts.exits == nil {
		a.counts.exits = map[agentproto.TerminationReason]uint64{}
	}
	a.counts.exits[reason]++
	x := agentproto.Exit{
		PeakMemoryBytes: exit.PeakMemory, MemoryBytes: s.used.Memory, Signal: exit.Signal, StartedMillis: s.started.UnixMilli(), EndedMillis: exit.At.UnixMilli(),
	}
	if exit.Known && exit.Signal == "" {
		x.Code = &exit.Code
	}
	if s.entry != nil {
		x.Restarts = s.entry.crash.Recent(exit.At)
	}
	if exit.Core && s.process != nil {
		x.CoreFile = findCore(s.process.Record().PID, s.started, s.dir)
	}
	a.unsent = append(a.unsent, endedOf(s, reason, x))
	if extra := len(a.unsent) - state.EndedMax; extra > 0 {
		a.config.Log.Warn("too many reports of ended server processes wait for the service: the oldest are dropped", "dropped", extra)
		a.unsent = a.unsent[extra:]
	}
}

func endedOf(s *server, reason agentproto.TerminationReason, exit agentproto.Exit) state.Ended {
	return state.Ended{ID: s.id, Reason: reason, Exit: exit}
}

// send reports the oldest unreported end to the service, one at a time.
func (a *Agent) send() {
	if !a.connected || a.sending || len(a.unsent) == 0 {
		return
	}
	a.sending = true
	one := a.unsent[0]
	ctx := a.context
	go func() {
		err := a.tell(ctx, one)
		a.do(func() {
			a.sending = false
			if err != nil {
				return // the next step tries again, once there is a connection
			}
			if len(a.unsent) > 0 && a.unsent[0].ID == one.ID {
				a.unsent = slices.Clone(a.unsent[1:])
				a.save()
			}
		})
	}()
}

// tell reports one end. It reads the tail of the output only now, so that the queue stays small. It returns nil if there is nothing to retry.
func (a *Agent) tell(ctx context.Context, one state.Ended) error {
	exit := one.Exit
	if tail, err := output.New(a.logDir(one.ID), a.config.Output).Tail(output.TailMax); err == nil {
		exit.LastOutput = agentproto.LastOutput(tail)
	}
	err := a.link.Call(ctx, &agentproto.NotifyServerProcessTermination{
		ProcessID: one.ID, EventCode: one.Reason.EventCode(), TerminationReason: one.Reason, Exit: &exit,
	}, nil)
	refused, ok := errors.AsType[*link.StatusError](err)
	if ok && refused.Final() {
		a.config.Log.Warn("the service refused the report of a server process's end: the agent does not repeat it", "process", one.ID, "error", err)
		return nil
	}
	if err != nil {
		select { // do not retry immediately, whatever the error
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return err
}
