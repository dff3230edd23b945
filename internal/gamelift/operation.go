package gamelift

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/musterhq/muster/internal/gamelift/model"
	"github.com/musterhq/muster/internal/identity"
)

// operation is one row of the table: the operation's function and the roles that may call it.
type operation struct {
	name   string
	access identity.Roles
	make   func() any // returns a new input
	call   func(*Service, context.Context, any) (any, error)

	standing standing
	note     string // for docs/compatibility.md
	like     string // for an operation of our own: the API operation that has the same input, output and errors

	input, output reflect.Type
}

// standing compares an operation with the cloud's.
type standing uint8

const (
	works standing = iota // possibly with a difference that docs/compatibility.md notes
	notOnOwnHardware
)

// serve returns an operation that the service implements.
func serve[I, O any](name string, a identity.Roles, call func(*Service, context.Context, *I) (*O, error)) operation {
	return operation{
		name: name, access: a, input: reflect.TypeFor[I](), output: reflect.TypeFor[O](),
		make: func() any { return new(I) },
		call: func(s *Service, ctx context.Context, in any) (any, error) { return call(s, ctx, in.(*I)) },
	}
}

// ours are the operations that the cloud's API lacks. An SDK client calls one through the similar operation's call, with
// another name in the path; the cloud answers UnknownOperationException.
var ours = []operation{
	like("DescribePlayerSessions", serve("ReleasePlayerSession", play, (*Service).ReleasePlayerSession)),
}

func like(name string, op operation) operation {
	op.like = name
	return op
}

// The sets of roles that may call an operation.
const (
	administer = identity.MayAdminister
	operate    = identity.MayOperate
	look       = identity.MayLook
	play       = identity.MayPlay
	playLook   = identity.MayPlayOrLook
)

// compiled is an operation that can be called from the wire.
type compiled struct {
	*operation
	constraints *constraint
	wire        *wireType
	noBody      bool // a successful answer has an empty body instead of {}
	recorded    bool // in the audit log
	declares    map[string]bool
	bounds      inputBounds
	naming      naming // of resources, for policies
}

// compiledOperations returns the table by name, compiled once per process.
var compiledOperations = sync.OnceValue(func() map[string]*compiled {
	byName, err := compileOperations(model.Load(), slices.Concat(operations, ours))
	if err != nil {
		panic("gamelift: " + err.Error()) // the SDK and the model disagree, which a test detects first
	}
	return byName
})

func compileOperations(m *model.Model, table []operation) (map[string]*compiled, error) {
	checks, plans := newConstraintPlans(m), wirePlans{}
	byName := make(map[string]*compiled, len(table))
	for i := range table {
		op := &table[i]
		described, ok := m.Operations[cmp.Or(op.like, op.name)]
		if !ok {
			return nil, fmt.Errorf("operation %s is not in the model", op.name)
		}
		constraints, err := checks.plan(described.Input, op.input)
		if err != nil {
			return nil, fmt.Errorf("operation %s: %w", op.name, err)
		}
		c := &compiled{
			operation: op, constraints: constraints, wire: plans.output(op.output),
			noBody: described.Output == "", recorded: isRecorded(op), declares: map[string]bool{},
			bounds: checks.boundsOf(described.Input, constraints, op.access.Allow(identity.Client)),
			naming: newNaming(op),
		}
		for _, code := range described.Errors {
			c.declares[code] = true
		}
		byName[op.name] = c
	}
	return byName, nil
}
