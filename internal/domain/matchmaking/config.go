package matchmaking

// Config holds the limits and periods that the room's commands are decided with. Deadlines are written into events when they are
// set, so a change of the configuration never changes what waits already.
type Config struct {
	RuleSetsMax    int
	MatchmakersMax int   // matchmaking configurations
	TicketBytesMax int64 // that all tickets in memory hold
}

// DefaultConfig returns the periods of the cloud service, and limits far above its quotas.
func DefaultConfig() Config {
	return Config{
		RuleSetsMax:    10_000,
		MatchmakersMax: 10_000,
		TicketBytesMax: 1 << 30,
	}
}
