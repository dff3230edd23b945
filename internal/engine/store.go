package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/journal"
)

// store is where an engine loads its state and saves snapshots: the part of journal.Journal that needs no writer.
type store interface {
	Read(ctx context.Context, from uint64) iter.Seq2[journal.Entry, error]
	SaveSnapshot(ctx context.Context, at uint64, write func(io.Writer) error) error
	LatestSnapshot(ctx context.Context) (at uint64, r io.ReadCloser, err error)
	Trim(ctx context.Context, before uint64) error
}

// load rebuilds the state after entry `until`, or after the last entry, from the latest snapshot and the journal after it. unsaved is
// the size of that part of the journal in bytes. If a snapshot from another node arrives meanwhile, it starts again with that.
func load(ctx context.Context, config Config, from store, until uint64) (c *cell.Cell, last uint64, unsaved int64, err error) {
	for tried := uint64(0); ; {
		var at uint64
		c, at, last, unsaved, err = loadFrom(ctx, config, from, until)
		if !errors.Is(err, journal.ErrTrimmed) || at <= tried {
			return c, last, unsaved, err
		}
		tried = at
	}
}

// loadFrom is load from the latest snapshot, which was taken after entry `at`.
func loadFrom(ctx context.Context, config Config, from store, until uint64) (c *cell.Cell, at, last uint64, unsaved int64, err error) {
	began := time.Now()
	c = cell.New(config.Cell)
	if config.extend != nil {
		config.extend(c)
	}
	at, snapshot, err := from.LatestSnapshot(ctx)
	if err != nil {
		return nil, at, 0, 0, fmt.Errorf("find the latest snapshot: %w", err)
	}
	if snapshot != nil {
		fill := config.Fill
		if fill == nil {
			fill = func(load func() error) error { return load() }
		}
		err := fill(func() error { return c.LoadTogether(snapshot, together) })
		snapshot.Close()
		if err != nil {
			return nil, at, 0, 0, fmt.Errorf("load the snapshot after journal entry %d: %w", at, err)
		}
	}
	last, unsaved, err = replay(ctx, c, from, at, until)
	if err != nil {
		return nil, at, 0, 0, err
	}
	v := c.View()
	totals := v.Totals()
	config.Log.Info("state loaded", "snapshot", at, "journal", last, "took", time.Since(began).Round(time.Millisecond),
		"fleets", totals.Fleets, "game_sessions", totals.GameSessions, "player_sessions", totals.PlayerSessions)
	return c, at, last, unsaved, nil
}

// together runs tasks on all processors; see kernel.Together.
func together(n int, task func(i int)) {
	var begun atomic.Int64
	work := func() {
		for i := int(begun.Add(1)) - 1; i < n; i = int(begun.Add(1)) - 1 {
			task(i)
		}
	}
	var others sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}
