// Package resident keeps small what the agent occupies of its host's memory.
//
// The agent is a command of a binary that has the whole service in it. At the start the initialisation of all packages touches pages all over that file, and the
// kernel maps those around them as well, two megabytes at a time where the page cache has huge pages. The agent needs few of them afterwards.
package resident

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"
)

const (
	// settled is when what only the start needed has been used for the last time.
	settled = 30 * time.Second
	// again is how often the agent gives back what rare work has left, such as fetching a build.
	again = time.Hour
)

// Keep gives back memory that the agent does not use, from time to time, until the context ends.
func Keep(ctx context.Context, log *slog.Logger) {
	for wait := settled; ; wait = again {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		debug.FreeOSMemory()
		if err := Release(); err != nil {
			log.Debug("pages of the agent's program stay in memory", "error", err)
			return
		}
	}
}
