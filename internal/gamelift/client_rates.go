package gamelift

import (
	"time"

	"github.com/musterhq/muster/internal/fair"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/rate"
)

// ClientRates bound the requests of access keys of the role client, which all players of a game share: in requests a
// second, with a burst of burstSeconds. Zero: not limited.
type ClientRates struct {
	PerKey     int
	PerAddress int
}

// burstSeconds is how long a rate may be saved up: a game that starts calls several operations at once.
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

// set changes the rates while they are used.
func (c *clientRates) set(r ClientRates) {
	c.keys.Set(saved(r.PerKey))
	c.addresses.Set(saved(r.PerAddress))
}

// AllowClient counts a request against the rates of client keys, also one that was made at another door of this port. It takes a token
// of the address, and then one of the key, so that one address cannot use up the key's.
func (h *Handler) AllowClient(by *identity.Principal) bool {
	return by.Role != identity.Client || h.clients.addresses.Allow(by.Address) && h.clients.keys.Allow(by.Holder())
}
