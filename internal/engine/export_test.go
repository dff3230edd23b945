package engine

import (
	"context"

	"github.com/musterhq/muster/internal/domain/answers"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Freeze returns the state as it is.
func (e *Engine) Freeze() *kernel.Snapshot {
	e.stateLock.Lock()
	defer e.stateLock.Unlock()
	return e.seq.Cell().Freeze()
}

// Void records that a request has no effect.
func (e *Engine) Void(once *answers.Once, err error) error {
	return e.void(context.Background(), once, err)
}

// Extend makes cells of this configuration know what a later release adds.
func (c *Config) Extend(f func(*cell.Cell)) { c.extend = f }

// NoticePauses makes jumps of the clock of a test count as pauses, as those of the wall clock do.
func (c *Config) NoticePauses() { c.pauses = true }

// Gathered returns the size of the group that is being built.
func (e *Engine) Gathered() int {
	e.stateLock.RLock()
	defer e.stateLock.RUnlock()
	return e.seq.Gathered()
}

// FreezesAsked returns how many backups wait for the present group.
func (e *Engine) FreezesAsked() int {
	e.stateLock.RLock()
	defer e.stateLock.RUnlock()
	return len(e.freezes)
}
