package gamelift

import (
	"context"
	"maps"
	"reflect"
)

// Replace replaces the function of an operation for this handler alone. `muster bench` uses it to measure the cost of a
// request that does not reach the core.
func Replace[I, O any](h *Handler, name string, call func(context.Context, *I) (*O, error)) {
	there := h.operations[name]
	if there == nil || there.input != reflect.TypeFor[I]() || there.output != reflect.TypeFor[O]() {
		panic("gamelift: no operation " + name + " with these types")
	}
	op, other := *there.operation, *there
	op.call = func(_ *Service, ctx context.Context, in any) (any, error) { return call(ctx, in.(*I)) }
	other.operation = &op
	h.operations = maps.Clone(h.operations) // all handlers of the process share the table
	h.operations[name] = &other
}
