package gamelift

import (
	"context"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/quotas"
)

// Caller is the principal of a request, with the scope of its signature.
type Caller struct {
	identity.Principal
	Region string // for ARNs made by this request
}

// requestContext holds the values of a request that operations read. It is a context type of its own, because two
// values in the usual chain would cost two allocations per request.
type requestContext struct {
	context.Context
	caller    Caller
	requestID string
}

type requestContextKey struct{}

func (c *requestContext) Value(key any) any {
	switch key {
	case requestContextKey{}:
		return c
	case quotas.Key{}:
		return &c.caller.Principal
	}
	return c.Context.Value(key)
}

// localCaller is the caller of calls that do not come over the network.
var localCaller = Caller{identity.Principal{Account: identity.DefaultAccount, Role: identity.Admin}, DefaultRegion}

// DefaultRegion is the region in ARNs if no signature names one.
const DefaultRegion = "us-east-1"

func callerOf(ctx context.Context) *Caller {
	if r, ok := ctx.Value(requestContextKey{}).(*requestContext); ok {
		return &r.caller
	}
	return &localCaller
}
