package engine

import (
	"context"
	"io"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Frozen is the state as it was after a journal entry, to be written while the engine goes on.
type Frozen struct {
	Entry     uint64
	Level     uint
	Last      domain.Time // of the last transaction
	Forgotten uint64      // records that had left memory for the archive

	snapshot *kernel.Snapshot
}

// Write writes the state in the form of snapshots.
func (f *Frozen) Write(w io.Writer) error { return f.snapshot.Write(w) }

func freeze(c *cell.Cell, at uint64) *Frozen {
	return &Frozen{Entry: at, Level: c.Level(), Last: c.Last(), Forgotten: c.Forgotten(), snapshot: c.Freeze()}
}

// errVoid: the state had changes that may never be committed.
var errVoid = domain.Refuse(domain.Overloaded, "this node stopped leading the cluster meanwhile; try again")

// Backup returns the state at a moment after the call, once it is durable. It has everything that this node acknowledged before the call, and this node's archive has
// every record that had left memory by then: those that ended before Frozen.Last. While the archive lacks records the error is ErrArchiveLacks.
func (e *Engine) Backup(ctx context.Context) (*Frozen, error) {
	if e.config.Peers != nil { // what other nodes have acknowledged
		if err := e.awaitIndex(ctx); err != nil {
			return nil, err
		}
	}
	voided := e.voided.Load()
	f, err := e.freezeNow(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.durable.wait(ctx, f.Entry, e.stopError); err != nil {
		return nil, err
	}
	switch {
	case e.voided.Load() != voided:
		return nil, errVoid
	case !e.covers.complete(): // not before the state is frozen: it may have jumped
		return nil, ErrArchiveLacks
	}
	return f, nil
}

// freezeNow freezes the state between two groups: at once if none is being built, and otherwise when the present one is taken.
func (e *Engine) freezeNow(ctx context.Context) (*Frozen, error) {
	e.stateLock.Lock()
	if e.seq.Gathered() == 0 {
		f := freeze(e.seq.Cell(), e.seq.building.Number-1)
		e.stateLock.Unlock()
		return f, nil
	}
	asked := make(chan *Frozen, 1)
	e.freezes = append(e.freezes, asked)
	e.stateLock.Unlock()
	select {
	case f := <-asked:
		if f == nil {
			return nil, errVoid
		}
		return f, nil
	case <-e.stopped:
		return nil, e.stopError()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answerFreezes gives the state after g, which was just taken, to those that wait for it. The caller holds stateLock.
func (e *Engine) answerFreezes(g *Group) {
	if len(e.freezes) == 0 {
		return
	}
	f := freeze(e.seq.Cell(), g.Number)
	for _, asked := range e.freezes {
		asked <- f
	}
	e.freezes = nil
}

// refuseFreezes ends the wait for a group that will never be taken. The caller holds stateLock.
func (e *Engine) refuseFreezes() {
	for _, asked := range e.freezes {
		asked <- nil
	}
	e.freezes = nil
}
