package engine

import (
	"context"
	"errors"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// OnRefusal sets a function f to be called with every refused command and its refusal, in the command's goroutine, before Do
// returns. nil: none. Followers do not see refusals, because a refusal has no event.
func (e *Engine) OnRefusal(f func(kernel.Command, *domain.Refusal)) { e.onRefusal.Store(&f) }

// told reports a refusal to the function set by OnRefusal, and returns err. It adds the holder's name to a refusal by a quota.
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
