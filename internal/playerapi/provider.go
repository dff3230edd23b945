package playerapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// Provider says who a player is. An error is for the log; the client is told nothing but that the token is not good.
type Provider interface {
	Identify(ctx context.Context, token string) (Claim, error)
}

// Claim is what a provider says about the bearer of a token.
type Claim struct {
	Player      string
	DisplayName string
	Insecure    bool // good for development only

	ticket domain.UUID // a login ticket that the core has yet to redeem
	once   domain.UUID // a signed token of the backend that is good for one login, which the core has to see to
	until  domain.Time // when that token ends
}

// BackendProvider is the name under which login tickets are shown, which a trusted backend has fetched, and tokens that it
// has signed itself.
const BackendProvider = "backend"

func (d *Door) identify(ctx context.Context, body *LoginRequest) (Claim, error) {
	if body.Provider == BackendProvider && (d.config.LoginKeys == nil || strings.HasPrefix(body.Token, ticketPrefix)) {
		claim, ok := claimOfTicket(body.Token)
		if !ok {
			return Claim{}, d.failedLogin(ctx, nil)
		}
		return claim, nil
	}
	provider, ok := d.config.Providers[body.Provider]
	if body.Provider == BackendProvider {
		provider, ok = d.config.LoginKeys, true
	}
	if !ok {
		known := append(slices.Sorted(maps.Keys(d.config.Providers)), BackendProvider)
		return Claim{}, refusal(flow.InvalidArgument, "provider: %.60q, want one of %s", body.Provider, strings.Join(known, ", "))
	}
	claim, err := provider.Identify(ctx, body.Token)
	if err != nil {
		return Claim{}, d.failedLogin(ctx, fmt.Errorf("provider %s: %w", body.Provider, err))
	}
	return claim, nil
}

func badToken() *Problem {
	return refusal(flow.Unauthenticated, "the token is not good for a login")
}

// ticketPrefix makes login tickets known for what they are. Behind the secret the ticket names its player, so that the
// login queue knows whom it is about before the ticket is redeemed; it is hashed as a whole, so another name makes it void.
const ticketPrefix = "plt_"

func newTicket(player string) (ticket string, hash domain.UUID) {
	secret, _ := newSecret(ticketPrefix)
	ticket = secret + "." + base64.RawURLEncoding.EncodeToString([]byte(player))
	return ticket, hashOf(ticket)
}

func claimOfTicket(ticket string) (Claim, bool) {
	_, name, ok := strings.Cut(ticket, ".")
	player, err := base64.RawURLEncoding.DecodeString(name)
	if !ok || err != nil || !strings.HasPrefix(ticket, ticketPrefix) {
		return Claim{}, false
	}
	return Claim{Player: string(player), ticket: hashOf(ticket)}, true
}

// Development believes everybody: {"player_id":"…"}.
type Development struct{}

// Identify reads the name.
func (Development) Identify(_ context.Context, token string) (Claim, error) {
	var named struct {
		Player      string `json:"player_id"`
		DisplayName string `json:"display_name"`
	}
	if err := json.Unmarshal([]byte(token), &named); err != nil {
		return Claim{}, err
	}
	return Claim{Player: named.Player, DisplayName: named.DisplayName, Insecure: true}, nil
}
