package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Every served operation and its main error, with the current SDK for JavaScript, which uses JSON. The steps are
// in js/walkthrough.js and in stories/.
func TestOperationsWithJavaScriptSDK(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("js/node_modules"); err != nil {
		t.Fatal("js/node_modules is missing: run scripts/test-needs.sh")
	}
	s := startService(t, "--virtual-clock") // so that the duration of calls does not matter
	cmd := exec.CommandContext(t.Context(), "node", "operations.js")
	cmd.Dir = "js"
	cmd.Env = cleanEnvironment("MUSTER_URL="+s.url(), "ARENA_SERVER="+arenaServerBinary, "ARENA_CLIENT="+arenaClientBinary)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seen := newCalls()
	for line := range strings.Lines(string(out)) {
		if list, ok := strings.CutPrefix(line, "CALLS "); ok {
			outcomes := map[string]map[string]bool{}
			must(t, json.Unmarshal([]byte(list), &outcomes))
			for operation, codes := range outcomes {
				for code := range codes {
					seen.note(operation, code)
				}
			}
		}
	}
	seen.everyOperation(t, "the SDK for JavaScript")
}
