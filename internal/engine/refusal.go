package engine

import (
	"errors"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// OnRefusal has f called with every command that is refused and why, by the goroutine that brought the command, before its caller
// hears of it. There is one f; nil: none. A refusal leaves no event, so followers do not see it.
func (e *Engine) OnRefusal(f func(kernel.Command, *domain.Refusal)) { e.onRefusal.Store(&f) }

// told tells of a refusal, and returns the error of a command as it is.
func (e *Engine) told(cmd kernel.Command, err error) error {
	if err == nil {
		return nil
	}
	if f := e.onRefusal.Load(); f != nil && *f != nil {
		if refusal, ok := errors.AsType[*domain.Refusal](err); ok {
			(*f)(cmd, refusal)
		}
	}
	return err
}
