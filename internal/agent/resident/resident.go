// Package resident reduces the agent's resident memory.
//
// The agent is a command of a binary that contains the whole service. At the start, the initialisation of all packages touches pages all over that
// file, and the kernel also maps the pages around them, two megabytes at a time if the page cache has huge pages. The agent needs few of them
// afterwards.
package resident

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"
)

const (
	// settled is the time after the start by which memory that only the start needed is no longer used.
	settled = 30 * time.Second
	// again is the interval at which the agent releases memory that was needed for rare work, such as fetching a build.
	again = time.Hour
)

// Keep releases unused memory from time to time, until the context ends.
func Keep(ctx context.Context, log *slog.Logger) {
	for wait := settled; ; wait = again {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		debug.FreeOSMemory()
		if err := Release(); err != nil {
			log.Debug("pages of the agent's executable stay in memory", "error", err)
			return
		}
	}
}
