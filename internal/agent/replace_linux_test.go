package agent

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterhq/muster/internal/agentproto"
)

// TestAgentIsKilledAndReplaced kills the agent in the middle of a match. The next one has the same processes, with their ids, ports and game sessions.
func TestAgentIsKilledAndReplaced(t *testing.T) {
	s := newService(t, play(3, "wait"))
	dir := dirs(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	first := exec.Command(self)
	first.Env = append(os.Environ(), "AGENT_TO_KILL="+dir, "AGENT_SERVICE=ws"+strings.TrimPrefix(s.server.URL, "http"))
	first.Stderr = os.Stderr
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	before := s.some(agentproto.ProcessStarting, 3)
	s.set(func() { s.unregistered = false })
	s.some(agentproto.ProcessRunning, 3)
	s.push(&agentproto.NotifyGameSessionActivated{ProcessID: before[0].ProcessID, GameSessionID: "gs-1"})
	s.eventually("the session is in the state file", func() bool {
		text, _ := os.ReadFile(dir + "/state/agent.json")
		return strings.Contains(string(text), "gs-1")
	})
	first.Process.Kill()
	first.Wait()
	s.set(func() { s.beat = nil })
	if err := unix.Kill(before[2].PID, unix.SIGKILL); err != nil { // while no agent is there
		t.Fatal(err)
	}

	s.runIn(dir, nil)
	end := s.ended(before[2].ProcessID)
	if end.TerminationReason != agentproto.Crashed || end.Exit.Code != nil || end.Exit.LastOutput != "ready\n" {
		t.Errorf("%+v, %+v", end, end.Exit)
	}
	s.eventually("the two old processes and a new one", func() bool {
		if s.beat == nil || len(s.beat.Processes) != 3 {
			return false
		}
		return !slices.ContainsFunc(before[:2], func(old agentproto.ProcessState) bool {
			return !slices.ContainsFunc(s.beat.Processes, func(p agentproto.ProcessState) bool {
				return p.ProcessID == old.ProcessID && p.PID == old.PID && p.Port == old.Port && p.State == agentproto.ProcessRunning
			})
		})
	})

	if err := unix.Kill(before[1].PID, unix.SIGKILL); err != nil { // adopted, not a child
		t.Fatal(err)
	}
	if end := s.ended(before[1].ProcessID); end.TerminationReason != agentproto.Crashed {
		t.Errorf("%+v", end)
	}
	s.push(&agentproto.UpdateRuntimeConfiguration{})
	s.eventually("the one with a game session stays", func() bool {
		return slices.ContainsFunc(s.beat.Processes, func(p agentproto.ProcessState) bool { // a new one may have registered before the update
			return p.ProcessID == before[0].ProcessID && p.State == processRetiring
		})
	})
}
