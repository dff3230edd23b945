package e2e

import (
	"context"
	"os/exec"
	"strings"
	"testing"
)

// A game server with our library that can never connect ends at once and reports why. The official SDK alone tries silently for three minutes.
func TestGameServerThatIsRefused(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	for name, c := range map[string]struct{ url, token, fleet, says string }{
		"a wrong token":        {p.ws(), "wrong", p.fleet, "403 Forbidden: forbidden: the auth token is not one of compute " + p.compute},
		"another fleet":        {p.ws(), p.token, "fleet-elsewhere", "compute " + p.compute + " is not registered in fleet fleet-elsewhere"},
		"an unknown authority": {"wss://" + p.address, p.token, p.fleet, "certificate signed by unknown authority"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		cmd := exec.CommandContext(ctx, arenaServerBinary, "-authtoken="+c.token, "-hostid="+p.compute, "-fleetid="+c.fleet,
			"-processid=process-1", "-websocketurl="+c.url, "-port=0", "-bind=127.0.0.1")
		cmd.Env = cleanEnvironment()
		said, err := cmd.CombinedOutput()
		if err == nil || ctx.Err() != nil || !strings.Contains(string(said), c.says) {
			t.Errorf("%s: ended with %v, %v; want %q in\n%s", name, err, ctx.Err(), c.says, said)
		}
		cancel()
	}
}
