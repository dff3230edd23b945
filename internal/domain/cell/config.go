package cell

import (
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
)

// Config holds the limits and periods that commands are decided with. Deadlines are written into events when they are
// set, so a change of the configuration never changes what is already waiting.
type Config struct {
	Reservation  time.Duration // how long a seat waits for its player
	Activation   time.Duration // how long a game session waits for its server to activate it
	ReadyTimeout time.Duration // from a process's connection to its ProcessReady
	// LinkGrace is how long a lost link may be away before the process counts as crashed. It is longer than the time at which an
	// SDK makes its fifth or sixth attempt: Go at 88 s, C++ at 92 s (docs/spec/server-sdk.md#reconnection).
	LinkGrace        time.Duration
	UnhealthyAfter   time.Duration // from the last good heartbeat to the request to terminate
	TerminateGrace   time.Duration // from that request to the end by force
	EndedKept        time.Duration // how long an ended process is remembered, to recognise a survivor
	GameServerClaim  time.Duration // how long a claimed game server has to be utilized
	GameServerHealth time.Duration // a game server that has not been healthy for so long is gone
	TokenLife        time.Duration // of a compute's auth token
	RevokedKeyKept   time.Duration // how long the record of a revoked access key stays, at least
	TokenOverlap     time.Duration // a token with less left than this is replaced; see TokenReplaced

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
	GameServerGroupsMax    int
	GameServersInGroupMax  int
	PlayersInOneCommandMax int
	QueuesMax              int
	DestinationsInQueueMax int
	RuleSetsMax            int
	MatchmakersMax         int   // matchmaking configurations
	TicketBytesMax         int64 // that all tickets in memory hold
	PlacementBytesMax      int64 // that all placements in memory hold
	PlayerSessionBytesMax  int64 // that all player sessions in memory hold
	AccessKeysMax          int   // revoked ones count while they are kept
	PlayersMax             int   // players whom player flow knows: those who logged in, and those the studio described
	LoginTicketsMax        int   // login tickets and used signed tokens that are remembered until they expire
	RequestsMax            int   // answered calls of player flow that are remembered for a repeat; then the oldest are forgotten
	InvitesToPlayerMax     int   // invites that one player can see

	Notify *Notify      // nil: nobody is told of anything
	Flow   *flow.Config // nil: there is no player flow

	Tokens TokenHasher // nil: PlayerData is never wrapped
}

// TokenHasher knows the SHA-256 of the connection token of a player, in hexadecimal digits: always the same for the same details.
type TokenHasher interface {
	TokenHash(player string, host *flow.Host) string
}

// TokenReplaced is how much of an auth token's life is left when a new one takes its place: TokenOverlap, but no more than a
// quarter of the life. With a longer one a short-lived token would be due for replacement as soon as it is issued.
func (c *Config) TokenReplaced() time.Duration { return min(c.TokenOverlap, c.TokenLife/4) }

// DefaultConfig returns the periods of the cloud service and limits far above its quotas, which protect nothing on own
// hosts. Sources: docs/spec/gamelift-api.md#quotas and docs/spec/server-sdk.md#timers; B-numbers in docs/behaviours.md where neither
// says anything.
func DefaultConfig() Config {
	return Config{
		Reservation:      time.Minute,
		Activation:       5 * time.Minute,
		ReadyTimeout:     5 * time.Minute,
		LinkGrace:        100 * time.Second,
		UnhealthyAfter:   3 * time.Minute,
		TerminateGrace:   5 * time.Minute,
		EndedKept:        10 * time.Minute,
		GameServerClaim:  time.Minute,
		GameServerHealth: 3 * time.Minute,
		TokenLife:        3 * time.Hour,
		TokenOverlap:     15 * time.Minute,
		RevokedKeyKept:   90 * 24 * time.Hour,

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
		GameServerGroupsMax:    1000,
		GameServersInGroupMax:  100_000,
		PlayersInOneCommandMax: 25,
		QueuesMax:              10_000,
		DestinationsInQueueMax: 100,
		RuleSetsMax:            10_000,
		MatchmakersMax:         10_000,
		TicketBytesMax:         1 << 30,
		PlacementBytesMax:      512 << 20,
		PlayerSessionBytesMax:  2 << 30,
		AccessKeysMax:          10_000,
		PlayersMax:             10_000_000,
		LoginTicketsMax:        1_000_000,
		RequestsMax:            4_000_000,
		InvitesToPlayerMax:     100,
	}
}
