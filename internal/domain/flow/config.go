package flow

import "time"

// Config is the configuration of player flow. A game instance keeps the rules that it began with; everything else is in
// force at once.
type Config struct {
	Sessions  SessionConfig
	Logins    LoginConfig
	Parties   PartyConfig
	Search    SearchConfig
	Games     GameConfig
	Penalties PenaltyConfig
	Queues    []QueueConfig // matchmaking configurations that players may enter; none: all of them, with the service's settings
}

// SessionConfig is about login sessions and their event streams.
type SessionConfig struct {
	RejectDuplicates bool          // duplicateLogin REJECT instead of REPLACE
	PingInterval     time.Duration // how often a stream is pinged
	DeadAfter        time.Duration // a stream that was silent for so long is lost
	IdleExpiry       time.Duration // a login session without a sign of life for so long ends
	RotationOverlap  time.Duration // how long the token before the latest one is good
	EventsKept       int           // for each player, and then for so long:
	EventsKeptFor    time.Duration
	SubscriptionLife time.Duration // a subscription of the studio whose receiver takes nothing for so long lapses; 0: never
	RestartGrace     time.Duration // how long players have to come back after a restart
	ReplacesMax      int32         // logins that may replace another one in ReplaceWindow
	ReplaceWindow    time.Duration
	FlappingLock     time.Duration
}

// LoginConfig is about how many may log in.
type LoginConfig struct {
	PerSecond   int  // more wait in line; 0: no limit
	OnlineMax   int  // players who may be logged in; 0: no limit
	QueueInGame bool // players in a game wait, too
}

// PartyConfig is about parties and invites.
type PartyConfig struct {
	MembersMax              int32
	MultipleLeaders         bool
	LeaderGrace             time.Duration
	OfflineRemoval          time.Duration
	StaleExpiration         time.Duration
	InviteTimeout           time.Duration
	InvitesMax              int // pending ones of a party
	Joinability             Joinability
	NoReadyRequired         bool
	ReadyTimeout            time.Duration // a member who is ready is so no longer, unless a search begins; 0: for ever
	NoChangeInGame          bool
	JoinCancelsMatchmaking  bool
	LogoutKeepsParty        bool
	SupportedClientVersions []string // none: all
}

// SearchConfig is about tickets.
type SearchConfig struct {
	OfflineGrace time.Duration
	// TicketTimeout is how long players search; 0: as long as the matchmaking configuration says.
	TicketTimeout time.Duration
	// PlacementQueue is the game session queue that hosts the matches of a matchmaking configuration whose FlexMatchMode is
	// STANDALONE; empty: players cannot search in it.
	PlacementQueue string
	// AcceptanceTimeout is how long players of player flow may take to accept a match; 0: as long as the matchmaking
	// configuration says.
	AcceptanceTimeout time.Duration
	LeaderCancels     bool // cancelPolicy LEADER_ONLY instead of ANY_MEMBER
	NoSoloParty       bool
	RequeueCount      int32 // own leaves within RequeueWindow that cost nothing
	RequeueWindow     time.Duration
	RequeueLock       time.Duration // doubles with each further one
	RequeueLockMax    time.Duration
	RequeueForget     time.Duration
}

// GameConfig is about game instances.
type GameConfig struct {
	Rules
	// What Rules.KeepAlive and Rules.AbsoluteTimeout become when they are switched on.
	KeepAliveInterval time.Duration
	AbsoluteAfter     time.Duration

	DirectCreate     bool
	DirectQueue      string // game session queue that places them, unless the studio names another one
	DirectPlayersMax int32
	DirectJoin       bool
	LaxPlayers       bool // not strictPlayers: foreign player sessions of players with keys are not refused
	LastGameKept     time.Duration
	MinLeft          time.Duration // a reservation with less left is made anew; half of it when that is shorter
	EndedKept        time.Duration // how long an ended game instance is known
	LossesTogether   time.Duration // losses within this time count as one
}

// QueueConfig overrides the service's settings for one queue.
type QueueConfig struct {
	Name           string
	PartyMax       int32    // 0: 10
	ClientVersions []string // none: all
	Own            []Setting
}

// Setting is an option that a queue has its own value of: JSON, as in a document.
type Setting struct{ Name, Value string }

// PenaltyMode says what is done with penalties.
type PenaltyMode uint8

// The modes.
const (
	PenaltiesOff PenaltyMode = iota
	PenaltiesReported
	PenaltiesEnforced
)

// PenaltyConfig is about locks after leaving.
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

// Queue returns the settings of a queue, and whether players may enter it.
func (c *Config) Queue(name string) (QueueConfig, bool) {
	for _, q := range c.Queues {
		if q.Name == name {
			return q, true
		}
	}
	return QueueConfig{Name: name}, len(c.Queues) == 0
}

// Of is the configuration for a queue: with the queue's values where it has its own.
func (c *Config) Of(queue string) Config {
	own := *c
	q, _ := c.Queue(queue)
	for _, x := range q.Own {
		if o, ok := queueOption(x.Name); ok {
			_ = o.form.read(&own, []byte(x.Value)) // was read before, when the configuration was made
		}
	}
	return own
}

// RulesOf are the rules of a game of a queue.
func (c *Config) RulesOf(queue string) Rules {
	own := c.Of(queue)
	return own.Games.Rules
}
