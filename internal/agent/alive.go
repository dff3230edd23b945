package agent

import (
	"context"

	"github.com/musterhq/muster/internal/plural"
)

// Alive describes in a few words what the agent does, once the goroutine of Run has handled all earlier work. It returns an error if that does not
// happen until ctx ends. An agent without a connection counts as alive, because the server processes that it watches keep running.
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
