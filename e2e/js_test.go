package e2e

import (
	"os"
	"os/exec"
	"testing"
)

// Every operation with the current SDK for JavaScript, which speaks JSON; the steps are in js/walkthrough.js.
func TestWalkThroughWithJavaScriptSDK(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("js/node_modules"); err != nil {
		t.Fatal("js/node_modules is missing: run scripts/test-needs.sh")
	}
	s := startService(t)
	cmd := exec.CommandContext(t.Context(), "node", "walkthrough.js")
	cmd.Dir = "js"
	cmd.Env = cleanEnvironment("MUSTER_URL="+s.url(), "ARENA_SERVER="+arenaServerBinary, "ARENA_CLIENT="+arenaClientBinary)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
