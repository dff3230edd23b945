package partners

import (
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerapi/calls"
	"github.com/musterhq/muster/internal/playerapi/connectiontoken"
	"github.com/musterhq/muster/internal/playerapi/feeds"
	"github.com/musterhq/muster/internal/playerapi/state"
)

// Config has the dependencies of the trusted servers' calls.
type Config struct {
	State  *state.State
	Auth   *authentication.Authenticator
	Tokens *connectiontoken.Signer
	Feeds  *feeds.Feeds
}

type door struct {
	Config
	realm *calls.Realm
}

// Declare declares the calls of trusted servers.
func Declare(r *calls.Realm, c Config) {
	d := &door{c, r}
	d.declarePartner()
	d.declareServers()
	d.declareBackfill()
	d.declareEvents()
}
