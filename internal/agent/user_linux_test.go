package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/agent/process"
	"github.com/musterhq/muster/internal/agentproto"
)

// Processes of another user run from a build that the agent has fetched, and write to their own directory, even where the state directory was closed to others. They can neither change
// the build nor read the agent's own files.
func TestBuildOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("the test needs root")
		}
		t.Skip("the test needs root")
	}
	user, err := process.FindUser("nobody")
	if err != nil {
		t.Fatal(err)
	}
	o := newStore(t)
	s := newService(t, play(1, "access", "WRITE", "READ"))
	s.conf.Build = o.build(t, "1")
	dir := dirs(t)
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	builds := filepath.Join(dir, "state", "builds")
	t.Setenv("WRITE", filepath.Join(builds, "builds", s.conf.Build.Digest, "more"))
	t.Setenv("READ", filepath.Join(dir, "state", "agent.json"))
	s.runIn(dir, func(c *Config) { c.User, c.Builds = user, builds })
	p := s.some(agentproto.ProcessStarting, 1)[0]
	s.eventually("the process says what it may do", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "logs", p.ProcessID, "output.log"))
		return strings.Contains(string(text), "own directory: <nil>") && strings.Count(string(text), "permission denied") == 2
	})
}
