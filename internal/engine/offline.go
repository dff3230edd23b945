package engine

import (
	"context"
	"fmt"
	"math"

	crand "crypto/rand"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Offline changes a cell without an engine, for tools that work on the data directory of a stopped service. A change gets the time
// of the cell's last transaction, so no deadline ends or moves, and the next start of the service still sees the whole downtime.
// Use it only for commands without further consequences.
type Offline struct {
	config Config
	cell   *cell.Cell
	seq    *Sequencer
	failed error
}

// OpenOffline loads the cell from the journal, to which the caller must have exclusive access. Archive may be nil.
func OpenOffline(ctx context.Context, config Config) (*Offline, error) {
	config.setDefaults()
	c, last, _, err := load(ctx, config, config.Journal, math.MaxUint64)
	if err == nil {
		err = config.loaded(c)
	}
	if err != nil {
		return nil, err
	}
	var seed [32]byte
	if _, err := crand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("seed for identifiers: %w", err)
	}
	return &Offline{config: config, cell: c, seq: NewSequencer(c, last, seed)}, nil
}

// Do executes a command. Its errors are those of Engine.Do.
func (o *Offline) Do(ctx context.Context, cmd kernel.Command) error {
	if o.failed != nil {
		return fmt.Errorf("%w: %w", ErrStopped, o.failed)
	}
	if given := wrapped(ctx, cmd); given != nil {
		given.At = domain.TimeOf(o.config.Now())
		cmd = given
	}
	call := newCall(cmd)
	o.seq.Execute(o.cell.Last().Std(), kernel.KindMask{}, []*Call{call})
	g := o.seq.Take(&Group{})
	if g == nil {
		return call.Err
	}
	if err := o.config.Journal.Append(ctx, g.Number, g.Batch); err != nil {
		o.failed = err
		return fmt.Errorf("%w: %w", ErrStopped, err)
	}
	o.seq.Durable(g.Number)
	return call.Err
}

// Read calls f with a view of the state, all of which is durable.
func (o *Offline) Read(_ context.Context, f func(v *cell.View) error) error {
	if o.failed != nil {
		return fmt.Errorf("%w: %w", ErrStopped, o.failed)
	}
	v := o.cell.View()
	return f(&v)
}
