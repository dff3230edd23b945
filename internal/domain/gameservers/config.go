package gameservers

import (
	"time"
)

// Config holds the limits and periods of the room's commands. Events contain the deadlines that they set, so a change of the
// configuration does not move deadlines that are already set.
type Config struct {
	GameServerClaim       time.Duration // how long a claimed game server has to be utilized
	GameServerHealth      time.Duration // after this time without a healthy report a game server is removed
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
