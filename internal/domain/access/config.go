package access

import (
	"time"
)

// Config holds the limits and periods of the room's commands. Events contain the deadlines that they set, so a change of the
// configuration does not move existing deadlines.
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
