package gamelift

import (
	"context"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/identity"
)

// Caller is the principal of a request, according to its signature.
type Caller struct {
	KeyID   string
	Account string // 12 digits; the account part of the ARNs made for this caller
	Region  string // from the signature's scope; the region part of these ARNs
	Role    identity.Role
}

// maker is the core's mark for objects of the caller.
func (c Caller) maker() domain.Maker { return domain.Maker(identity.MakerOf(c.KeyID, c.Role)) }

// requestContext has the values of a request that operations read. It is a context of its own because two values
// in the usual chain would be two allocations for every request.
type requestContext struct {
	context.Context
	caller    Caller
	requestID string
}

type requestContextKey struct{}

func (c *requestContext) Value(key any) any {
	if key == (requestContextKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// WithCaller returns a context with a caller, for calls without a network.
func WithCaller(ctx context.Context, caller Caller) context.Context {
	return &requestContext{Context: ctx, caller: caller}
}

// localCaller is the caller of calls without a network that name none.
var localCaller = Caller{Account: identity.DefaultAccount, Region: DefaultRegion, Role: identity.Admin}

// DefaultRegion is the region in ARNs where no signature names one.
const DefaultRegion = "us-east-1"

func callerOf(ctx context.Context) Caller {
	if r, ok := ctx.Value(requestContextKey{}).(*requestContext); ok {
		return r.caller
	}
	return localCaller
}
