package engine

import (
	"context"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// beatPause is the time between two attempts to queue a beat.
const beatPause = 100 * time.Millisecond

// Beat returns nil once it has verified that the engine makes progress: it has read the state and, on a leader, sent a command through the queue and
// the journal. It may wait for that command even after ctx ends.
func Beat(ctx context.Context, e *Engine) error {
	if err := e.ReadHere(ctx, func(*cell.View) error { return nil }); err != nil {
		return err
	}
	for {
		r := e.run.Load()
		if r == nil { // a follower
			return e.Err()
		}
		err := r.submit(&kernel.Tick{})
		if err == nil {
			return nil
		}
		if _, full := errors.AsType[*domain.Refusal](err); !full { // the run has ended: another node leads, or the engine has failed
			return e.Err()
		}
		select {
		case <-time.After(beatPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
