package playerapi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerapi/authentication"
)

// BackendProvider is the name under which login tickets are shown, which a trusted backend has fetched, and tokens that it
// has signed itself.
const BackendProvider = "backend"

func (d *Door) identify(ctx context.Context, body *LoginRequest) (authentication.Claim, error) {
	if body.Provider == BackendProvider && (d.config.LoginKeys == nil || strings.HasPrefix(body.Token, authentication.TicketPrefix)) {
		claim, ok := authentication.ClaimOfTicket(body.Token)
		if !ok {
			return authentication.Claim{}, d.failedLogin(ctx, nil)
		}
		return claim, nil
	}
	provider, ok := d.config.Providers[body.Provider]
	if body.Provider == BackendProvider {
		provider, ok = d.config.LoginKeys, true
	}
	if !ok {
		known := append(slices.Sorted(maps.Keys(d.config.Providers)), BackendProvider)
		return authentication.Claim{}, refusal(flow.InvalidArgument, "provider: %.60q, want one of %s", body.Provider, strings.Join(known, ", "))
	}
	claim, err := provider.Identify(ctx, body.Token)
	if err != nil {
		return authentication.Claim{}, d.failedLogin(ctx, fmt.Errorf("provider %s: %w", body.Provider, err))
	}
	return claim, nil
}

func badToken() *Problem {
	return refusal(flow.Unauthenticated, "the token is not good for a login")
}
