package engine

import (
	"context"
	"errors"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// OnRefusal sets the function f, which is called with every refused command and its refusal, by the command's goroutine, before Do
// returns. nil: none. Followers do not see refusals, because these have no event.
func (e *Engine) OnRefusal(f func(kernel.Command, *domain.Refusal)) { e.onRefusal.Store(&f) }

// told calls f for a refusal, and returns err; a refusal by a quota gets the name of the holder.
func (e *Engine) told(ctx context.Context, cmd kernel.Command, err error) error {
	if err == nil {
		return nil
	}
	err = e.config.Quotas.Tell(ctx, err)
	if f := e.onRefusal.Load(); f != nil && *f != nil {
		if refusal, ok := errors.AsType[*domain.Refusal](err); ok {
			(*f)(cmd, refusal)
		}
	}
	return err
}
