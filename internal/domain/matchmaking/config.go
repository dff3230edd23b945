package matchmaking

// Config holds the limits and periods of the room's commands. Events contain the deadlines that they set, so a change of the
// configuration does not move deadlines that are already set.
type Config struct {
	RuleSetsMax    int
	MatchmakersMax int   // matchmaking configurations
	TicketBytesMax int64 // of all tickets in memory
}

// DefaultConfig returns the periods of the cloud service, and limits far above its quotas.
func DefaultConfig() Config {
	return Config{
		RuleSetsMax:    10_000,
		MatchmakersMax: 10_000,
		TicketBytesMax: 1 << 30,
	}
}
