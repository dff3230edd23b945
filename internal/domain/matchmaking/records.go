// Package matchmaking is the room of rule sets, matchmaking configurations, the tickets that wait in a configuration's pool, pending
// matches, and game sessions that matches created. Package matcher finds matches; this package checks its proposals and carries them out.
package matchmaking

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/quota"
)

// References to records in the tables of this package; see chunk.Ref.
type (
	RuleSetRef       = chunk.Ref[RuleSet]
	ConfigurationRef = chunk.Ref[Configuration]
	TicketRef        = chunk.Ref[Ticket]
	MatchRef         = chunk.Ref[Match]
	HostedRef        = chunk.Ref[Hosted]
	RecentRef        = chunk.Ref[Recent]
)

// RuleSet is a rule set as a resource. It never changes.
type RuleSet struct {
	Name            string
	Region, Account string
	Body            string
	Created         domain.Time
	Tags            []keyvalue.Pair
	Holder          quota.Holder // of its quota; see package quota

	Changed uint64
}

// Configuration is a matchmaker: settings, a rule set, and a pool of tickets of its own.
//
// Slices of a record are never changed in place: a frozen copy of the record, or a match, may share them.
type Configuration struct {
	Name            string
	Region, Account string
	Created         domain.Time
	Description     string

	RuleSet string
	Version uint64 // incremented with each new rule set: a proposal for an earlier version is stale

	RequestTimeout     time.Duration // whole seconds, as is AcceptanceTimeout
	AcceptanceTimeout  time.Duration
	AcceptanceRequired bool
	Standalone         bool     // FlexMatchMode is STANDALONE: nothing is placed
	Queues             []string // ARNs; the first that exists takes the placements
	AdditionalPlayers  int32    // seats that new matches keep free
	AutoBackfill       bool
	Properties         []keyvalue.Pair
	Data               string // GameSessionData
	NotificationTarget string
	CustomEventData    string
	Tags               []keyvalue.Pair
	Holder             quota.Holder

	Changed uint64
}

// Tags of a configuration on which the service acts: settings for which the API has no member.
const (
	PlacementTimeoutTag = "muster:on-placement-timeout"     // Requeue, the default, or Fail
	PlacementFailureTag = "muster:on-placement-failure"     // Fail, the default, or Requeue
	BackfillLeaversTag  = "muster:backfill-leavers"         // "true": an automatic backfill fills the seats of players who left
	SilentCancelTag     = "muster:events-for-silent-cancel" // "true": MatchmakingCancelled also where the cloud sends no event

	Requeue = "REQUEUE"
	Fail    = "FAIL"
)

func (c *Configuration) tag(key string) string {
	for _, t := range c.Tags {
		if t.Key == key {
			return t.Value
		}
	}
	return ""
}

// RequeueOnTimeout reports whether tickets continue to search after their placement has timed out.
func (c *Configuration) RequeueOnTimeout() bool { return c.tag(PlacementTimeoutTag) != Fail }

// RequeueOnFailure reports whether tickets continue to search after their placement has failed.
func (c *Configuration) RequeueOnFailure() bool { return c.tag(PlacementFailureTag) == Requeue }

// BackfillLeavers reports whether an automatic backfill fills the seats of players who have left.
func (c *Configuration) BackfillLeavers() bool { return c.tag(BackfillLeaversTag) == "true" }

// TellsSilentCancels reports whether MatchmakingCancelled is sent where the cloud service sends no event.
func (c *Configuration) TellsSilentCancels() bool { return c.tag(SilentCancelTag) == "true" }

// Status of a ticket.
type Status uint8

// The statuses, in the order of a ticket's life.
const (
	Queued Status = iota + 1
	Searching
	RequiresAcceptance
	Placing
	Completed
	Failed
	Cancelled
	TimedOut
)

func (s Status) String() string {
	return [...]string{"", "QUEUED", "SEARCHING", "REQUIRES_ACCEPTANCE", "PLACING", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"}[s]
}

// Waits reports whether the ticket is in its configuration's pool.
func (s Status) Waits() bool { return s == Queued || s == Searching }

// Active reports whether the ticket has not ended.
func (s Status) Active() bool { return s < Completed }

// Owner is the owner of a ticket.
type Owner uint8

// The owners.
const (
	ClientOwned   Owner = iota + 1 // a client of the service API, or a game server that asks for more players
	PartyOwned                     // a party of player flow; the ticket's id is a domain.TicketID
	InstanceOwned                  // a game instance of player flow, by Game.EnterMatchmaking; the id is a domain.BackfillID
	ServiceOwned                   // the service itself: an automatic backfill
)

// Ticket is a request for a match by 1 to 10 players who stay together, or for more players in a running game session. It is small,
// because a hundred thousand tickets may wait.
type Ticket struct {
	ID              string
	No              uint64 // number among all tickets of the cell; orders tickets of the same millisecond by age
	Configuration   string
	Region, Account string // of the configuration's ARN
	Maker           domain.Maker
	Holder          quota.Holder // 0: none, or the maker
	Status          Status
	Reason          Reason
	Backfill        bool
	Owner           Owner
	automatic       bool   // Owner is ServiceOwned; old journals have this instead
	Generation      uint32 // incremented when it enters the pool: a proposal with an earlier generation is stale
	Players         int32
	Start, End      domain.Time // Start never changes
	TimeoutAt       domain.Time // applies while it waits

	// Roster holds its players as one protobuf message, MatchPlayers, in a third of the memory of decoded players. PlayersOf decodes it.
	Roster string

	Slots      int32  // of a backfill ticket: players wanted; 0: as many as there is room for
	Game       string // of a backfill ticket: the id of its game session, or with STANDALONE the caller's name for it
	GameRegion string

	Outcome *Outcome // set when it enters a match; never changed in place

	EndedNo uint64
	Changed uint64
}

// Answer is a player's answer to a proposed match.
type Answer uint8

// The answers.
const (
	NoAnswer Answer = iota
	Accepted
	Rejected
)

// Outcome is the result of a match for a ticket.
type Outcome struct {
	Match    string
	Team     string                   // of all its players; empty in a backfill ticket, whose players have their own
	Answers  []byte                   // an Answer for each player; empty: no player has answered
	Sessions []domain.PlayerSessionID // a player session for each player, once placed

	Game       string
	GameRegion string
	IPAddress  string
	DNSName    string
	Port       uint16
}

// Answer returns the answer of a player of the ticket.
func (o *Outcome) Answer(player int) Answer {
	if player >= len(o.Answers) {
		return NoAnswer
	}
	return Answer(o.Answers[player])
}

// Seat is a ticket in a match.
type Seat struct {
	Ticket uint64
	Team   string // of its players; empty: it is the backfill ticket
}

// RuleCount counts how often a rule passed and failed during the search for a match.
type RuleCount struct {
	Rule           int32 // index in the rule set
	Passed, Failed uint64
}

// Match is a pending match: first until all players have accepted, then until its game session is active.
type Match struct {
	ID         string // a UUID; also the id of its placement and the name of its game session
	Of         *Configuration
	Seats      []Seat // by the age of the tickets
	Proposed   domain.Time
	AcceptBy   domain.Time // 0: acceptance is not required, or is complete
	PlayersMax int32       // of the game session: all seats of the rule set's teams at the candidate's age
	Region     string      // suits all players; with STANDALONE
	Counts     []RuleCount

	Changed uint64
}

// Backfill returns the seat of the match's backfill ticket.
func (m *Match) Backfill() (Seat, bool) {
	for _, s := range m.Seats {
		if s.Team == "" {
			return s, true
		}
	}
	return Seat{}, false
}

// Update is a notice to a server process about its backfill.
type Update uint8

// The updates.
const (
	DataUpdated Update = iota + 1
	BackfillFailed
	BackfillTimedOut
	BackfillCancelled
)

func (u Update) String() string {
	return [...]string{"", "MATCHMAKING_DATA_UPDATED", "BACKFILL_FAILED", "BACKFILL_TIMED_OUT", "BACKFILL_CANCELLED"}[u]
}

// Hosted is the record of a game session created by a match, until the session ends.
type Hosted struct {
	Game   string // its id
	Match  string // the match that created it
	Of     *Configuration
	Roster string // the players of the latest match data, with their teams and the values that the matcher used

	Automatic bool // an automatic backfill follows while seats are free

	// The latest update, which its server process must receive at least once.
	Updates uint64 // counts them
	Told    uint64
	Why     Update
	Ticket  string // of the latest update

	Changed uint64
}
