package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
)

// A host that is about to be reclaimed reports that, starts no more processes, and ends the running ones half a minute before. The end of a drain, which the service
// sends with each connection, does not change that.
func TestInterruption(t *testing.T) {
	file := filepath.Join(t.TempDir(), "termination.txt")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := newService(t, play(2, "wait"))
	s.run(func(c *Config) { c.InterruptionFile = file })
	list := s.some(agentproto.ProcessStarting, 2)
	for _, p := range list {
		s.push(&agentproto.NotifyGameSessionActivated{ProcessID: p.ProcessID, GameSessionID: "g"})
	}
	s.some(agentproto.ProcessRunning, 2)
	write("2015-01")
	write(time.Now().Add(time.Hour).Format(time.RFC3339) + "\r\n")
	s.eventually("the heartbeat says it", func() bool { return s.beat.Status == agentproto.Interrupted })
	s.push(&agentproto.DrainCompute{Cancel: true})
	s.push(&agentproto.ForceExitServerProcess{ProcessID: list[0].ProcessID})
	s.ended(list[0].ProcessID)
	s.set(func() { s.beat = nil })
	s.eventually("a heartbeat with the other process alone", func() bool {
		return s.beat != nil && s.beat.Status == agentproto.Interrupted && len(s.beat.ProcessList) == 1 && s.beat.ProcessList[0] == list[1].ProcessID
	})

	soon := filepath.Join(t.TempDir(), "soon")
	late := newService(t, play(1, "stubborn"))
	late.run(func(c *Config) { c.InterruptionFile = soon })
	id := late.some(agentproto.ProcessStarting, 1)[0].ProcessID
	late.push(&agentproto.NotifyGameSessionActivated{ProcessID: id, GameSessionID: "g"})
	late.some(agentproto.ProcessRunning, 1)
	file = soon
	write(time.Now().Format(time.RFC3339))
	if end := late.ended(id); end.TerminationReason != agentproto.ComputeShuttingDown {
		t.Errorf("%+v", end)
	}
}
