package engine

import (
	"context"
	"fmt"

	"github.com/musterhq/muster/internal/domain/cell"
)

// A node that lacks entries which the others have trimmed receives a snapshot in their place, and its state jumps to that of the snapshot. Earlier
// reads stay valid, because they were true at an earlier entry; but followers miss events, and the archive misses records.

// jump loads the snapshot that replaced the entries after the current state.
func (e *Engine) jump(ctx context.Context) error {
	c, last, unsaved, err := load(ctx, e.config, e.source, 0)
	if err != nil {
		return err
	}
	if reached := e.durable.reached.Load(); last <= reached {
		return fmt.Errorf("the journal lacks entry %d, and its latest snapshot is after entry %d", reached+1, last)
	}
	return e.jumpTo(ctx, c, last, unsaved)
}

func (e *Engine) jumpTo(ctx context.Context, c *cell.Cell, last uint64, unsaved int64) error {
	from := e.durable.reached.Load()
	if err := e.coverFrom(ctx, c, last); err != nil { // before the new state can be read
		return err
	}
	if err := e.config.loaded(c); err != nil {
		return err
	}
	if err := e.have(c, last, unsaved); err != nil {
		return err
	}
	e.log.Info("the state has jumped to a snapshot from another node", "from_entry", from, "entry", last)
	e.time.applied(c.Last().Std())
	e.durable.reached.Store(last)
	e.durable.wake(last)
	e.feedGap(last, c.Last())
	e.fed.reached.Store(last)
	e.fed.wake(last)
	return nil
}

// loadUpTo discards the state in memory beyond entry `until`. If another node's snapshot is newer, it loads that.
func (e *Engine) loadUpTo(ctx context.Context, until uint64) error {
	c, last, unsaved, err := load(ctx, e.config, e.source, until)
	if err != nil {
		return err
	}
	if last > until {
		return e.jumpTo(ctx, c, last, unsaved)
	}
	return e.have(c, last, unsaved)
}
