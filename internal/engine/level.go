package engine

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/domain/kernel"
)

// Levels are what the members of a cluster say of their programs; see package kernel for what a level is.
type Levels interface {
	// Levels returns the lowest of the levels that the programs of the members know, those without a vote included. complete says whether every member has
	// told its own since its program started.
	Levels() (lowest uint, complete bool)
}

// levelEvery is the time between two looks at the members' levels, while they are not known to be all at that of this program.
const levelEvery = time.Second

// Level returns the level in force, above which nothing is written, and the highest one that this program knows.
func (e *Engine) Level() (inForce, known uint) {
	e.stateLock.RLock()
	defer e.stateLock.RUnlock()
	c := e.seq.Cell()
	return c.Level(), c.KnownLevel()
}

// beginLevel puts the level of this program in force when no other one has to read the data: on a single machine, and in a cluster that begins.
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

// watchLevels is the goroutine that raises the level when the programs of all members know a higher one.
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
