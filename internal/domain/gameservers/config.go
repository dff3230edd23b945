package gameservers

import (
	"time"
)

// Config holds the limits and periods that the room's commands are decided with. Deadlines are written into events when they are
// set, so a change of the configuration never changes what waits already.
type Config struct {
	GameServerClaim       time.Duration // how long a claimed game server has to be utilized
	GameServerHealth      time.Duration // a game server that has not been healthy for so long is gone
	GameServerGroupsMax   int
	GameServersInGroupMax int
}

// DefaultConfig returns the periods of the cloud service, and limits far above its quotas.
func DefaultConfig() Config {
	return Config{
		GameServerClaim:       time.Minute,
		GameServerHealth:      3 * time.Minute,
		GameServerGroupsMax:   1000,
		GameServersInGroupMax: 100_000,
	}
}
