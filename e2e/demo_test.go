package e2e

import (
	"os/exec"
	"strings"
	"testing"
)

// The demo plays the walk-through and ends with status 0.
func TestDemo(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), musterBinary, "demo", "--exit", "--listen", freeAddress(t))
	cmd.Env = cleanEnvironment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, part := range []string{"create-location", "create-fleet", "register-compute", "get-compute-auth-token", "create-game-session", "create-player-session", "describe-player-sessions", "ACTIVE", "returning to gi-"} {
		if !strings.Contains(string(out), part) {
			t.Errorf("the demo does not show %s:\n%s", part, out)
		}
	}
}
