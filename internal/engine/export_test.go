package engine

import "github.com/musterhq/muster/internal/domain/kernel"

// Freeze returns the state as it is.
func (e *Engine) Freeze() *kernel.Snapshot {
	e.stateLock.Lock()
	defer e.stateLock.Unlock()
	return e.seq.Cell().Freeze()
}
