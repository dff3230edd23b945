package gamelift

import (
	"time"

	"github.com/musterhq/muster/internal/fair"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/rate"
)

// ClientRates limit the requests of access keys with the role client, which all players of a game share: in requests per second, with
// a burst of burstSeconds. Zero: no limit.
type ClientRates struct {
	PerKey     int
	PerAddress int
}

// burstSeconds is the burst in seconds' worth of requests, because a game calls several operations when it starts.
const burstSeconds = 10

func saved(perSecond int) rate.Limit {
	return rate.PerSecond(float64(perSecond), burstSeconds*perSecond)
}

type clientRates struct{ keys, addresses *fair.Rate }

func newClientRates(l Limits, now func() time.Time) clientRates {
	return clientRates{
		keys:      fair.NewRate(saved(l.Clients.PerKey), now),
		addresses: fair.NewRate(saved(l.Clients.PerAddress), now),
	}
}

// set changes the rates at run time.
func (c *clientRates) set(r ClientRates) {
	c.keys.Set(saved(r.PerKey))
	c.addresses.Set(saved(r.PerAddress))
}

// AllowClient counts a request against the rates of client keys, including one made at another door of this port. It takes a token of
// the address before one of the key, so that one address cannot use up the key's tokens.
func (h *Handler) AllowClient(by *identity.Principal) bool {
	return by.Role != identity.Client || h.clients.addresses.Allow(by.Address) && h.clients.keys.Allow(by.Holder())
}
