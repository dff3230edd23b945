package access

import (
	"time"
)

// Config holds the limits and periods of the room's commands. Events contain the deadlines that they set, so a change of the
// configuration does not move deadlines that are already set.
type Config struct {
	RevokedKeyKept time.Duration // minimum time for which the record of a revoked key is kept
	AccessKeysMax  int           // revoked ones count while they are kept
}

// DefaultConfig returns the periods of the cloud service, and limits far above its quotas.
func DefaultConfig() Config {
	return Config{
		RevokedKeyKept: 90 * 24 * time.Hour,
		AccessKeysMax:  10_000,
	}
}
