package gamelift

import (
	"cmp"
	"context"
	"time"

	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
)

// Allows reports whether a role may call an operation.
func (h *Handler) Allows(operation string, role identity.Role) bool {
	op, known := h.operations[operation]
	return known && op.access.Allow(role)
}

// Perform executes an operation for a principal that another door has authenticated. Input and output are documents of the JSON protocol; an
// operation that answers without a body returns none. Roles, rates, bounds and constraints apply as for a signed request, and a panic becomes the
// same error. An error is a smithy.APIError with the code and message of the refusal.
func (h *Handler) Perform(ctx context.Context, by *identity.Principal, operation string, input []byte) (output []byte, err error) {
	began, requestID := time.Now(), newRequestID()
	output, refused := h.performed(ctx, by, operation, requestID, input)
	h.count(ctx, h.console, operation, refused, began)
	if refused != nil { // a nil *T stored in err would not be nil
		return nil, refused
	}
	return output, nil
}

func (h *Handler) performed(ctx context.Context, by *identity.Principal, operation, requestID string, input []byte) (output []byte, refused smithy.APIError) {
	defer h.confine(operation, requestID, &output, &refused)
	op, known := h.operations[operation]
	if !known {
		return nil, commonError(codeUnknownOperation, "'%s' is not an operation of this service", excerpt.Short(operation))
	}
	if int64(len(input)) > op.bounds.body {
		return nil, tooMuch(operation, op.bounds.body)
	}
	region, err := usualRegion(ctx, h.service.engine)
	if err != nil {
		return nil, h.apiError(op, requestID, err)
	}
	caller := Caller{*by, region}
	if caller.Account == "" {
		caller.Account = identity.DefaultAccount
	}
	return h.perform(ctx, jsonCodec{}, op, &caller, requestID, &buffers{body: input})
}

// usualRegion returns the region for ARNs made by a request without one: that of the oldest fleet, else of a location, so that all ARNs of an
// installation agree.
func usualRegion(ctx context.Context, e *engine.Engine) (region string, err error) {
	region = DefaultRegion
	err = e.Read(ctx, func(v *cell.View) error {
		if fleets := v.Fleets(0, "", 1); len(fleets) > 0 {
			region = cmp.Or(fleets[0].Region, region)
		} else if locations := v.Locations("", 1); len(locations) > 0 {
			region = cmp.Or(locations[0].Region, region)
		}
		return nil
	})
	return region, err
}
