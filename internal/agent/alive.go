package agent

import (
	"context"

	"github.com/musterhq/muster/internal/plural"
)

// Alive returns what the agent does, in a few words, once the goroutine of Run has handled what came before; an error when it does not until ctx ends. An agent without a connection
// works: the server processes that it watches run on.
func (a *Agent) Alive(ctx context.Context) (string, error) {
	status := make(chan string, 1)
	ask := func() {
		if a.connected {
			status <- "connected; " + plural.Of(len(a.running), "server process", "server processes")
		} else {
			status <- "not connected; " + plural.Of(len(a.running), "server process", "server processes")
		}
	}
	select {
	case a.work <- ask:
	case <-a.stopped:
		return "stops", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
	select {
	case s := <-status:
		return s, nil
	case <-a.stopped:
		return "stops", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
