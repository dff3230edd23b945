package flow

import "time"

// Config is the configuration of player flow. A game instance keeps the rules with which it began; all other changes take
// effect at once.
type Config struct {
	Sessions  SessionConfig
	Logins    LoginConfig
	Parties   PartyConfig
	Search    SearchConfig
	Games     GameConfig
	Penalties PenaltyConfig
	Queues    []QueueConfig // matchmaking configurations that players may enter; empty: all, with the service's settings
}

// SessionConfig configures login sessions and their event streams.
type SessionConfig struct {
	RejectDuplicates bool          // duplicateLogin REJECT instead of REPLACE
	PingInterval     time.Duration // interval between pings of a stream
	DeadAfter        time.Duration // a stream that has been silent for this long is lost
	IdleExpiry       time.Duration // a login session without a sign of life for this long ends
	RotationOverlap  time.Duration // how long the previous token stays valid
	EventsKept       int           // most events kept for each player, for EventsKeptFor
	EventsKeptFor    time.Duration
	SubscriptionLife time.Duration // a subscription of the studio lapses if its receiver takes nothing for this long; 0: never
	RestartGrace     time.Duration // how long players have to return after a restart
	ReplacesMax      int32         // logins within ReplaceWindow that may replace another one
	ReplaceWindow    time.Duration
	FlappingLock     time.Duration
}

// LoginConfig limits logins.
type LoginConfig struct {
	PerSecond   int  // further players wait in line; 0: no limit
	OnlineMax   int  // most players who may be logged in; 0: no limit
	QueueInGame bool // players in a game also wait in line
}

// PartyConfig configures parties and invites.
type PartyConfig struct {
	MembersMax              int32
	MultipleLeaders         bool
	LeaderGrace             time.Duration
	OfflineRemoval          time.Duration
	StaleExpiration         time.Duration
	InviteTimeout           time.Duration
	InvitesMax              int // pending invites of a party
	Joinability             Joinability
	NoReadyRequired         bool
	ReadyTimeout            time.Duration // how long a member stays ready unless a search begins; 0: indefinitely
	NoChangeInGame          bool
	JoinCancelsMatchmaking  bool
	LogoutKeepsParty        bool
	SupportedClientVersions []string // empty: all
}

// SearchConfig configures tickets.
type SearchConfig struct {
	OfflineGrace time.Duration
	// TicketTimeout is how long players search; 0: the time in the matchmaking configuration.
	TicketTimeout time.Duration
	// PlacementQueue is the game session queue that hosts the matches of a matchmaking configuration whose FlexMatchMode is
	// STANDALONE; empty: players cannot search in it.
	PlacementQueue string
	// AcceptanceTimeout is how long players of player flow have to accept a match; 0: the time in the matchmaking
	// configuration.
	AcceptanceTimeout time.Duration
	LeaderCancels     bool // cancelPolicy LEADER_ONLY instead of ANY_MEMBER
	NoSoloParty       bool
	RequeueCount      int32 // voluntary leaves within RequeueWindow without a lock
	RequeueWindow     time.Duration
	RequeueLock       time.Duration // doubles with each further leave
	RequeueLockMax    time.Duration
	RequeueForget     time.Duration
}

// GameConfig configures game instances.
type GameConfig struct {
	Rules
	// The values of Rules.KeepAlive and Rules.AbsoluteTimeout when those are switched on.
	KeepAliveInterval time.Duration
	AbsoluteAfter     time.Duration

	DirectCreate     bool
	DirectQueue      string // game session queue that places direct games, unless the studio names another one
	DirectPlayersMax int32
	DirectJoin       bool
	LaxPlayers       bool // strictPlayers is off: player sessions from outside player flow are allowed for players with keys
	LastGameKept     time.Duration
	MinLeft          time.Duration // a reservation with less time left is replaced; half the reservation time if that is shorter
	EndedKept        time.Duration // how long an ended game instance is remembered
	LossesTogether   time.Duration // connection losses within this time count as simultaneous
}

// QueueConfig overrides the service's settings for one queue.
type QueueConfig struct {
	Name           string
	PartyMax       int32    // 0: 10
	ClientVersions []string // empty: all
	Own            []Setting
}

// Setting is an option for which a queue has its own value: JSON, as in a document.
type Setting struct{ Name, Value string }

// PenaltyMode determines how penalties are applied.
type PenaltyMode uint8

// The modes.
const (
	PenaltiesOff PenaltyMode = iota
	PenaltiesReported
	PenaltiesEnforced
)

// PenaltyConfig configures locks after leaving.
type PenaltyConfig struct {
	Mode       PenaltyMode
	DodgeSteps []time.Duration
	LeaveSteps []time.Duration
	AFKSteps   []time.Duration
	DodgeDecay time.Duration
	LeaveDecay time.Duration
	AFKDecay   time.Duration
}

// DefaultConfig returns the defaults of docs/spec/player-api.md#options.
func DefaultConfig() Config {
	return Config{
		Sessions: SessionConfig{
			PingInterval: 10 * time.Second, DeadAfter: 25 * time.Second, IdleExpiry: 24 * time.Hour, RotationOverlap: 30 * time.Second,
			EventsKept: 256, EventsKeptFor: 15 * time.Minute, SubscriptionLife: 7 * 24 * time.Hour, RestartGrace: time.Minute,
			ReplacesMax: 5, ReplaceWindow: time.Minute, FlappingLock: time.Minute,
		},
		Logins: LoginConfig{PerSecond: 50},
		Parties: PartyConfig{
			MembersMax: 8, LeaderGrace: 30 * time.Second, OfflineRemoval: 2 * time.Minute, StaleExpiration: time.Hour,
			InviteTimeout: 2 * time.Minute, InvitesMax: 20, Joinability: InviteOnly,
		},
		Search: SearchConfig{
			OfflineGrace: 15 * time.Second, RequeueCount: 3, RequeueWindow: time.Minute,
			RequeueLock: 15 * time.Second, RequeueLockMax: 2 * time.Minute, RequeueForget: 10 * time.Minute,
		},
		Games: GameConfig{
			Rules: Rules{
				Reconnect: ReconnectOptional, ReconnectWindow: 3 * time.Minute, NoShowHold: 2 * time.Minute, Reservation: time.Minute,
				DisconnectsMax: 5, AllocationTimeout: 2 * time.Minute, Completed: CompletedAuto, KeepAliveMisses: 4,
				AbsoluteTimeout: 6 * time.Hour, EndingGrace: 30 * time.Second,
			},
			DirectPlayersMax: 16, KeepAliveInterval: 15 * time.Second, AbsoluteAfter: 6 * time.Hour,
			LastGameKept: 24 * time.Hour, MinLeft: 10 * time.Second, EndedKept: 10 * time.Minute, LossesTogether: 30 * time.Second,
		},
		Penalties: PenaltyConfig{
			Mode:       PenaltiesReported,
			DodgeSteps: []time.Duration{0, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute},
			LeaveSteps: []time.Duration{0, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, 24 * time.Hour},
			AFKSteps:   []time.Duration{0, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, 24 * time.Hour},
			DodgeDecay: 12 * time.Hour, LeaveDecay: 24 * time.Hour, AFKDecay: 24 * time.Hour,
		},
	}
}

// Queue returns the settings of a queue, and whether players may enter the queue.
func (c *Config) Queue(name string) (QueueConfig, bool) {
	for _, q := range c.Queues {
		if q.Name == name {
			return q, true
		}
	}
	return QueueConfig{Name: name}, len(c.Queues) == 0
}

// Of returns the configuration for a queue, in which the queue's own values override the service's.
func (c *Config) Of(queue string) Config {
	own := *c
	q, _ := c.Queue(queue)
	for _, x := range q.Own {
		if o, ok := queueOption(x.Name); ok {
			_ = o.form.read(&own, []byte(x.Value)) // was validated when the configuration was made
		}
	}
	return own
}

// RulesOf returns the rules of a game from a queue.
func (c *Config) RulesOf(queue string) Rules {
	own := c.Of(queue)
	return own.Games.Rules
}
