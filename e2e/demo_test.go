package e2e

import (
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/porttest"
)

// The demo plays the walk-through and ends with status 0.
func TestDemo(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), musterBinary, "demo", "--exit", "--listen", porttest.Free(t))
	cmd.Env = cleanEnvironment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, part := range []string{"create-location", "create-fleet", "hosts join-token", "muster agent", "update-runtime-configuration", "active server processes: 2", "processes 1, game sessions 0", "create-game-session", "create-player-session", "describe-player-sessions", "ACTIVE", "returning to gi-"} {
		if !strings.Contains(string(out), part) {
			t.Errorf("the demo does not show %s:\n%s", part, out)
		}
	}
}

// The demo's programs find each other over IPv6, too.
func TestDemoOnIPv6(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("this machine has no IPv6: %v", err)
	}
	l.Close()
	cmd := exec.CommandContext(t.Context(), musterBinary, "demo", "--exit", "--listen", "[::1]:0")
	cmd.Env = cleanEnvironment()
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "players, at [::1]:") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The demo of a cluster continues after the leader is killed.
func TestDemoCluster(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), musterBinary, "demo", "--cluster", "--exit", "--listen", porttest.Free(t)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, part := range []string{"kill -9 the leader", "returning to ", "TERMINATED", "even after the death of the leader"} {
		if !strings.Contains(string(out), part) {
			t.Errorf("the demo does not show %q:\n%s", part, out)
		}
	}
}

// The demo needs only the program itself, because a release contains nothing else.
func TestDemoFromTheBinaryAlone(t *testing.T) {
	t.Parallel()
	alone := filepath.Join(t.TempDir(), "muster")
	must(t, exec.Command("cp", musterBinary, alone).Run()) // a file that this process has open for writing could not be run
	cmd := exec.CommandContext(t.Context(), alone, "demo", "--exit", "--listen", porttest.Free(t))
	cmd.Env, cmd.Dir = cleanEnvironment("PATH=/nowhere"), t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), alone, "demo", "--exit", "--game-server", "/none").CombinedOutput(); err == nil || !strings.Contains(string(out), "--game-server") {
		t.Errorf("a game server that there is not: %v\n%s", err, out)
	}
}

// The start of a second service fails with advice on how to choose another port.
func TestABusyPortNamesTheFlag(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	taken, free := l.Addr().String(), porttest.Free(t)
	serve := func(flags ...string) []string {
		return append([]string{"serve", "--dev", "--data", t.TempDir()}, flags...)
	}
	for _, args := range [][]string{
		serve("--listen", taken), serve("--listen", free, "--player-flow", "--partner-listen", taken),
		{"demo", "--listen", taken}, {"demo", "--cluster", "--listen", taken},
	} {
		cmd := exec.CommandContext(t.Context(), musterBinary, args...)
		cmd.Env = cleanEnvironment()
		out, err := cmd.CombinedOutput()
		flag := args[len(args)-2]
		if err == nil || !strings.Contains(string(out), taken) || !strings.Contains(string(out), "choose a free one with "+flag+" ") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}
