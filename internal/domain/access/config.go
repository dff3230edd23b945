package access

import (
	"time"
)

// Config holds the limits and periods that the room's commands are decided with. Deadlines are written into events when they are
// set, so a change of the configuration never changes what waits already.
type Config struct {
	RevokedKeyKept time.Duration // how long the record of a revoked access key stays, at least
	AccessKeysMax  int           // revoked ones count while they are kept
}

// DefaultConfig returns the periods of the cloud service, and limits far above its quotas.
func DefaultConfig() Config {
	return Config{
		RevokedKeyKept: 90 * 24 * time.Hour,
		AccessKeysMax:  10_000,
	}
}
