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

// AllowClient counts a request that a client key made at another door of this port against the same rates.
func (h *Handler) AllowClient(keyID, address string) bool {
	return h.clients.addresses.Allow(address) && h.clients.keys.Allow(keyID)
}

// allow takes a token of the address, and then one of the key, so that one address cannot use up the key's.
func (c *clientRates) allow(caller *Caller, address string) bool {
	return caller.Role != identity.Client || c.addresses.Allow(address) && c.keys.Allow(caller.KeyID)
}
