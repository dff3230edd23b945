// Package libraries tests the public libraries gameclient and gameserver against a real service. These tests need the
// service's module, which the libraries' own modules do without.
package libraries

import (
	"os"
	"os/exec"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ownProcess runs the test again in its own process and reports false here, because a process can have only one official
// server SDK and therefore one gameserver.Server.
func ownProcess(t *testing.T) bool {
	t.Helper()
	const mark = "GAMESERVER_TEST_IN_OWN_PROCESS"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=5m")
	// The SDK reads these: a heartbeat every 100 ms, and no pause before it closes an old connection.
	cmd.Env = append(os.Environ(), mark+"="+t.Name(), "HEALTHCHECK_INTERVAL=100ms", "HEALTHCHECK_MAX_JITTER=1ms",
		"DISCONNECT_WEBSOCKET_TIMEOUT=1ms")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}
