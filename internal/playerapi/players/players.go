package players

import (
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerapi/calls"
	"github.com/musterhq/muster/internal/playerapi/rates"
	"github.com/musterhq/muster/internal/playerapi/state"
	"github.com/musterhq/muster/internal/playerapi/streams"
	"github.com/musterhq/muster/internal/playerhooks"
)

// PlayersConfig is what the calls of players need.
type Config struct {
	State     *state.State
	Auth      *authentication.Authenticator
	Hooks     *playerhooks.Hooks // nil: no call asks the studio's backend
	Streams   *streams.Streams
	Buckets   *rates.Buckets
	Logins    *rates.LoginQueue
	PublicURL string // where players' clients reach the stream; empty: where they sent Login to
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
