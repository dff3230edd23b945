package playerapi

import "github.com/musterhq/muster/internal/playerhooks"

// PlayersConfig is what the calls of players need.
type PlayersConfig struct {
	State     *State
	Auth      *Authenticator
	Hooks     *playerhooks.Hooks // nil: no call asks the studio's backend
	Streams   *Streams
	Buckets   *buckets
	Logins    *loginQueue
	PublicURL string // where players' clients reach the stream; empty: where they sent Login to
}

type playersDoor struct {
	PlayersConfig
	realm *Realm
}

// declarePlayers declares the calls of players.
func declarePlayers(r *Realm, c PlayersConfig) {
	d := &playersDoor{c, r}
	d.declareSession()
	d.declareParty()
	d.declareMatchmaking()
	d.declareGames()
}
