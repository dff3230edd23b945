package hosting

import (
	"time"
)

// Config holds the limits and periods of the room's commands. Events contain the deadlines that they set, so a change of the
// configuration does not move existing deadlines.
type Config struct {
	Reservation  time.Duration // how long a seat waits for its player
	Activation   time.Duration // how long a game session waits for its server to activate it
	ReadyTimeout time.Duration // how long a process may take from its connection to ProcessReady
	// LinkGrace is how long a process has to reconnect before it counts as crashed. It is longer than the time of an SDK's fifth or sixth
	// attempt: Go at 88 s, C++ at 92 s (docs/spec/server-sdk.md#reconnection).
	LinkGrace      time.Duration
	UnhealthyAfter time.Duration // time from the last good heartbeat to the request to terminate
	TerminateGrace time.Duration // time from that request to the forced end
	EndedKept      time.Duration // how long an ended process is remembered, to recognize one that survived
	TokenLife      time.Duration // of a compute's auth token
	TokenOverlap   time.Duration // a token with less left than this is replaced; see TokenReplaced

	FleetsMax              int
	LocationsMax           int // custom locations
	LocationsInFleetMax    int
	ComputesInFleetMax     int
	ProcessesOnComputeMax  int
	PlayersInGameMax       int32
	PropertiesInGameMax    int
	TagsMax                int
	LaunchesOnComputeMax   int // server processes that a runtime configuration may run on each host
	ScalingPoliciesMax     int // of a fleet
	AliasesMax             int
	BuildsMax              int
	PlayersInOneCommandMax int
	QueuesMax              int
	DestinationsInQueueMax int
	PlacementBytesMax      int64 // of all placements in memory
	PlayerSessionBytesMax  int64 // of all player sessions in memory
}

// DefaultConfig returns the periods of the cloud service, and limits far above its quotas.
func DefaultConfig() Config {
	return Config{
		Reservation:            time.Minute,
		Activation:             5 * time.Minute,
		ReadyTimeout:           5 * time.Minute,
		LinkGrace:              100 * time.Second,
		UnhealthyAfter:         3 * time.Minute,
		TerminateGrace:         5 * time.Minute,
		EndedKept:              10 * time.Minute,
		TokenLife:              3 * time.Hour,
		TokenOverlap:           15 * time.Minute,
		FleetsMax:              10_000,
		LocationsMax:           10_000,
		LocationsInFleetMax:    100,
		ComputesInFleetMax:     100_000,
		ProcessesOnComputeMax:  100_000,
		PlayersInGameMax:       200,
		PropertiesInGameMax:    16,
		TagsMax:                50,
		LaunchesOnComputeMax:   50,
		ScalingPoliciesMax:     50,
		AliasesMax:             10_000,
		BuildsMax:              10_000,
		PlayersInOneCommandMax: 25,
		QueuesMax:              10_000,
		DestinationsInQueueMax: 100,
		PlacementBytesMax:      512 << 20,
		PlayerSessionBytesMax:  2 << 30,
	}
}

// TokenReplaced returns the remaining life of an auth token at which a new token replaces it: TokenOverlap, but at most a quarter of the
// token's life. With a longer overlap, a short-lived token would be due for replacement as soon as it is issued.
func (c *Config) TokenReplaced() time.Duration { return min(c.TokenOverlap, c.TokenLife/4) }
