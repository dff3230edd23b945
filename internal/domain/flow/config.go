package flow

import (
	"errors"
	"fmt"
	"time"
)

// Config is the configuration of player flow. A game instance keeps the rules that it began with; everything else is in
// force at once.
type Config struct {
	Sessions  SessionConfig
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
	RestartGrace     time.Duration // how long everybody has to come back after a restart
	ReplacesMax      int32         // logins that may replace another one in ReplaceWindow
	ReplaceWindow    time.Duration
	FlappingLock     time.Duration
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
	NoChangeInGame          bool
	JoinCancelsMatchmaking  bool
	LogoutKeepsParty        bool
	SupportedClientVersions []string // none: all
}

// SearchConfig is about tickets.
type SearchConfig struct {
	OfflineGrace   time.Duration
	LeaderCancels  bool // cancelPolicy LEADER_ONLY instead of ANY_MEMBER
	NoSoloParty    bool
	RequeueCount   int32 // own leaves within RequeueWindow that cost nothing
	RequeueWindow  time.Duration
	RequeueLock    time.Duration // doubles with each further one
	RequeueLockMax time.Duration
	RequeueForget  time.Duration
}

// GameConfig is about game instances.
type GameConfig struct {
	Rules
	DirectCreate   bool
	DirectJoin     bool
	LaxPlayers     bool // not strictPlayers: foreign player sessions of players with keys are not refused
	LastGameKept   time.Duration
	MinLeft        time.Duration // a reservation with less left is made anew; half of it when that is shorter
	EndedKept      time.Duration // how long an ended game instance is known
	LossesTogether time.Duration // losses within this time count as one
}

// QueueConfig overrides the service's settings for one queue.
type QueueConfig struct {
	Name           string
	PartyMax       int32 // 0: 10
	Reconnect      Reconnect
	ClientVersions []string // none: all
	Requeue        *bool
}

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
	DodgeDecay time.Duration
	LeaveDecay time.Duration
}

// DefaultConfig returns the defaults of the specification.
func DefaultConfig() Config {
	return Config{
		Sessions: SessionConfig{
			PingInterval: 10 * time.Second, DeadAfter: 25 * time.Second, IdleExpiry: 24 * time.Hour, RotationOverlap: 30 * time.Second,
			EventsKept: 256, EventsKeptFor: 15 * time.Minute, RestartGrace: time.Minute,
			ReplacesMax: 5, ReplaceWindow: time.Minute, FlappingLock: time.Minute,
		},
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
			LastGameKept: 24 * time.Hour, MinLeft: 10 * time.Second, EndedKept: 10 * time.Minute, LossesTogether: 30 * time.Second,
		},
		Penalties: PenaltyConfig{
			Mode:       PenaltiesReported,
			DodgeSteps: []time.Duration{0, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute},
			LeaveSteps: []time.Duration{0, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, 24 * time.Hour},
			DodgeDecay: 12 * time.Hour, LeaveDecay: 24 * time.Hour,
		},
	}
}

// eventsLimit is the most events that are kept for a player, whatever is set.
const eventsLimit = 1000

// Validate reports every value that makes no sense, by its name in the specification.
func (c *Config) Validate() error {
	var errs []error
	within := func(name string, d, least, most time.Duration) {
		if d < least || d > most {
			errs = append(errs, fmt.Errorf("%s: %s, want %s to %s", name, d, least, most))
		}
	}
	number := func(name string, n, least, most int) {
		if n < least || n > most {
			errs = append(errs, fmt.Errorf("%s: %d, want %d to %d", name, n, least, most))
		}
	}
	const day = 24 * time.Hour
	s, p, g := &c.Sessions, &c.Parties, &c.Games
	within("pingInterval", s.PingInterval, time.Second, time.Minute)
	within("deadAfter", s.DeadAfter, 2*s.PingInterval, time.Hour)
	within("sessionIdleExpiry", s.IdleExpiry, 5*time.Minute, 30*day)
	number("eventRetention", s.EventsKept, 1, eventsLimit)
	within("eventRetention", s.EventsKeptFor, 0, day)
	within("restartGrace", s.RestartGrace, 0, 10*time.Minute)
	number("replaceBurst", int(s.ReplacesMax), 1, 1000)
	number("maxMembers", int(p.MembersMax), 1, 100)
	within("leaderGrace", p.LeaderGrace, 0, 10*time.Minute)
	within("offlineRemoval", p.OfflineRemoval, 0, time.Hour)
	within("staleExpiration", p.StaleExpiration, time.Minute, day)
	within("inviteTimeout", p.InviteTimeout, 5*time.Second, 7*day)
	number("maxPendingInvites", p.InvitesMax, 1, 100)
	number("joinability", int(p.Joinability), int(Open), int(Closed))
	within("offlineGrace", c.Search.OfflineGrace, 0, 2*time.Minute)
	number("reconnect", int(g.Reconnect), int(ReconnectOff), int(ReconnectRequired))
	within("reconnectWindow", g.ReconnectWindow, 0, 2*time.Hour)
	within("noShowHold", g.NoShowHold, 0, time.Hour)
	within("reservationTimeout", g.Reservation, 3*time.Second, 10*time.Minute)
	number("maxDisconnectsPerGame", int(g.DisconnectsMax), 0, 1<<20)
	within("allocationTimeout", g.AllocationTimeout, 5*time.Second, 30*time.Minute)
	number("onPlayerSessionCompleted", int(g.Completed), int(CompletedAuto), int(CompletedLeft))
	if g.KeepAlive != 0 {
		within("keepAliveInterval", g.KeepAlive, time.Second, 2*time.Minute)
		number("keepAliveMissesLimit", int(g.KeepAliveMisses), 1, 20)
	}
	if g.AbsoluteTimeout != 0 {
		within("absoluteTimeout", g.AbsoluteTimeout, time.Minute, 7*day)
	}
	within("endingGrace", g.EndingGrace, time.Second, 10*time.Minute)
	within("emptyTimeout", g.EmptyTimeout, 0, day)
	number("penaltyMode", int(c.Penalties.Mode), int(PenaltiesOff), int(PenaltiesEnforced))
	if len(c.Penalties.DodgeSteps) == 0 || len(c.Penalties.LeaveSteps) == 0 {
		errs = append(errs, errors.New("dodgeSteps, leaveSteps: empty, want at least one step"))
	}
	for i, q := range c.Queues {
		if q.Name == "" {
			errs = append(errs, fmt.Errorf("queues[%d].name: empty", i))
		}
		number(fmt.Sprintf("queues[%d].maxParty", i), int(q.PartyMax), 0, 10)
		number(fmt.Sprintf("queues[%d].reconnect", i), int(q.Reconnect), 0, int(ReconnectRequired))
	}
	return errors.Join(errs...)
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

// RulesOf are the rules of a game of a queue: the queue's where it has its own.
func (c *Config) RulesOf(queue string) Rules {
	r := c.Games.Rules
	if queue == "" {
		return r
	}
	q, _ := c.Queue(queue)
	if q.Reconnect != 0 {
		r.Reconnect = q.Reconnect
	}
	if q.Requeue != nil {
		r.Requeue = *q.Requeue
	}
	return r
}
