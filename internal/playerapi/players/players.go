package players

import (
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerapi/calls"
	"github.com/musterhq/muster/internal/playerapi/rates"
	"github.com/musterhq/muster/internal/playerapi/state"
	"github.com/musterhq/muster/internal/playerapi/streams"
	"github.com/musterhq/muster/internal/playerhooks"
)

// Config has the dependencies and settings of the players' calls.
type Config struct {
	State     *state.State
	Auth      *authentication.Authenticator
	Hooks     *playerhooks.Hooks // nil: no hooks
	Streams   *streams.Streams
	Buckets   *rates.Buckets
	Logins    *rates.LoginQueue
	PublicURL string // base of the stream's URL for clients; empty: the address of their Login
}

type door struct {
	Config
	realm *calls.Realm
}

// Declare declares the calls of players.
func Declare(r *calls.Realm, c Config) {
	d := &door{c, r}
	d.declareSession()
	d.declareParty()
	d.declareMatchmaking()
	d.declareGames()
}
