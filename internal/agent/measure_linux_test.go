package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/usage"
	"github.com/musterhq/muster/internal/agentproto"
)

// The agent meets its targets with 20 processes.
func TestMeasure(t *testing.T) {
	binary := os.Getenv("MUSTER_BINARY")
	if binary == "" {
		t.Skip("measures the binary of MUSTER_BINARY")
	}
	s := newService(t, play(20, "wait"))
	s.heartbeat = 5000
	s.unregistered = false
	dir := dirs(t)
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := exec.Command(binary, "agent", "--server", s.server.URL, "--fleet", "fleet-1", "--compute-name", "host-1", "--token-file", token,
		"--root", filepath.Join(dir, "root"), "--state-dir", filepath.Join(dir, "state"), "--ports", "20000-20999", "--end-processes")
	agent.Env, agent.Stderr = []string{}, os.Stderr
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		agent.Process.Signal(os.Interrupt)
		agent.Wait()
	}()
	s.some(agentproto.ProcessRunning, 20)
	before := usage.OfProcesses([]int{agent.Process.Pid})
	const long = time.Minute
	time.Sleep(long)
	now := usage.OfProcesses([]int{agent.Process.Pid})
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", agent.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "Rss") {
			t.Log(strings.TrimSpace(line))
		}
	}
	percent := 100 * float64(now.CPU-before.CPU) / float64(long)
	t.Logf("resident %.1f MiB, processor %.2f %% of a core", float64(now.Memory)/(1<<20), percent)
	if now.Memory > 40<<20 || percent > 1 {
		t.Error("want at most 40 MiB and 1 %")
	}
}
