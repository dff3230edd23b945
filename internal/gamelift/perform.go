package gamelift

import (
	"context"

	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/identity"
)

// Allows reports whether a role may call an operation.
func (h *Handler) Allows(operation string, role identity.Role) bool {
	op, known := h.operations[operation]
	return known && op.access.Allow(role)
}

// Perform carries out an operation for a principal that another door has authenticated. Input and output are documents of the JSON protocol; an operation that answers without a
// body has none. Roles, rates, bounds and constraints are those of a signed request. An error has the code and the message of a refusal, as a smithy.APIError.
func (h *Handler) Perform(ctx context.Context, by *identity.Principal, operation string, input []byte) (output []byte, err error) {
	op, known := h.operations[operation]
	if !known {
		return nil, commonError(codeUnknownOperation, "'%s' is no operation of this service", excerpt.Short(operation))
	}
	if int64(len(input)) > op.bounds.body {
		return nil, tooMuch(operation, op.bounds.body)
	}
	caller := Caller{*by, DefaultRegion}
	if caller.Account == "" {
		caller.Account = identity.DefaultAccount
	}
	output, refused := h.perform(ctx, jsonCodec{}, op, &caller, newRequestID(), &buffers{body: input})
	if refused != nil { // a nil *T in err would not be nil
		return nil, refused
	}
	return output, nil
}
