package engine

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/domain/kernel"
)

// Levels reports which levels the programs of a cluster's members know; package kernel defines levels.
type Levels interface {
	// Levels returns the lowest level that the members' programs know, including non-voting members. complete reports whether every member has
	// announced its level since its program started.
	Levels() (lowest uint, complete bool)
}

// levelEvery is the interval of checks of the members' levels, until all are known to have this program's level.
const levelEvery = time.Second

// Level returns the level in force, above which nothing is written, and the highest level that this program knows.
func (e *Engine) Level() (inForce, known uint) {
	e.stateLock.RLock()
	defer e.stateLock.RUnlock()
	c := e.seq.Cell()
	return c.Level(), c.KnownLevel()
}

// beginLevel puts this program's level in force if no other program has to read the data: on a single machine, and when a cluster begins.
func (r *run) beginLevel() error {
	inForce, known := r.e.Level()
	begins := r.e.durable.reached.Load() == 0
	switch {
	case inForce == known || r.e.cluster != nil && !begins:
		return nil
	case begins:
		return r.submit(&kernel.RaiseLevel{To: known}) // no other release has read the data
	}
	return r.raiseLevel(inForce, known)
}

func (r *run) raiseLevel(from, to uint) error {
	err := r.submit(&kernel.RaiseLevel{To: to})
	if err == nil {
		r.e.log.Info("the level of the journal was raised: releases that do not know it can no longer read the data", "from", from, "to", to)
	}
	return err
}

// watchLevels is the goroutine that raises the level once the programs of all members know a higher one.
func (r *run) watchLevels(ctx context.Context) {
	every := time.NewTicker(levelEvery)
	defer every.Stop()
	for {
		inForce, known := r.e.Level()
		if inForce == known {
			return
		}
		lowest, complete := r.e.config.Levels.Levels()
		if to := min(lowest, known); complete && to > inForce {
			if err := r.raiseLevel(inForce, to); err != nil {
				r.e.log.Warn("the level of the journal could not be raised: the service tries again", "to", to, "error", err)
			}
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
}
