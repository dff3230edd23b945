// Package matchmaking holds rule sets and configurations as resources, the tickets that wait in a configuration's pool,
// the matches that are on their way, and the game sessions that came of matches: their data and their indexes. How matches
// are found is not its matter; what becomes of them is decided by the cell.
package matchmaking

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/keyvalue"
)

// Ref names a record inside this package's tables; see chunk.Ref.
type Ref = chunk.Ref

// RuleSet is a rule set as a resource. It never changes.
type RuleSet struct {
	Name            string
	Region, Account string
	Body            string
	Created         domain.Time
	Tags            []keyvalue.Pair

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
	Version uint64 // counts the rule sets that it has had: a proposal for another one is stale

	RequestTimeout     time.Duration // whole seconds, as the next one
	AcceptanceTimeout  time.Duration
	AcceptanceRequired bool
	Standalone         bool     // FlexMatchMode is STANDALONE: nothing is placed
	Queues             []string // ARNs; the first that exists takes the placements
	AdditionalPlayers  int32    // slots that new matches keep free
	AutoBackfill       bool
	Properties         []keyvalue.Pair
	Data               string // GameSessionData
	NotificationTarget string
	CustomEventData    string
	Tags               []keyvalue.Pair

	Changed uint64
}

// Tags of a configuration that the service acts on: settings that the API has no member for.
const (
	PlacementTimeoutTag = "muster:on-placement-timeout"     // Requeue, the default, or Fail
	PlacementFailureTag = "muster:on-placement-failure"     // Fail, the default, or Requeue
	BackfillLeaversTag  = "muster:backfill-leavers"         // "true": an automatic backfill fills the slots of players who left
	SilentCancelTag     = "muster:events-for-silent-cancel" // "true": MatchmakingCancelled also where the cloud says nothing

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

// RequeueOnTimeout reports whether tickets search on when their placement has timed out.
func (c *Configuration) RequeueOnTimeout() bool { return c.tag(PlacementTimeoutTag) != Fail }

// RequeueOnFailure reports whether tickets search on when their placement has failed.
func (c *Configuration) RequeueOnFailure() bool { return c.tag(PlacementFailureTag) == Requeue }

// BackfillLeavers reports whether players who have left a game session make room for others.
func (c *Configuration) BackfillLeavers() bool { return c.tag(BackfillLeaversTag) == "true" }

// TellsSilentCancels reports whether MatchmakingCancelled is sent where the cloud service says nothing.
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

// Ticket is a wish for a match of 1 to 10 players who stay together, or for more players in a running game session. It
// is kept small: a hundred thousand of them may wait.
type Ticket struct {
	ID              string
	No              uint64 // counts the tickets of the cell: their age among those of one millisecond
	Configuration   string
	Region, Account string // of the configuration's ARN
	Maker           domain.Maker
	Status          Status
	Reason          Reason
	Backfill        bool
	Automatic       bool   // a backfill ticket that the service made
	Generation      uint32 // counts its ways into the pool: a proposal with an earlier one is stale
	Players         int32
	Start, End      domain.Time // Start never changes
	TimeoutAt       domain.Time // applies while it waits

	// Roster is its players as one protobuf message, MatchPlayers: a third of the memory of decoded ones. Players decodes it.
	Roster string

	Slots      int32  // of a backfill ticket: how many players are wanted; 0: as many as there is room for
	Game       string // of a backfill ticket: the id of its game session, or with STANDALONE what its caller calls it
	GameRegion string

	Outcome *Outcome // since it is part of a match; never changed in place

	EndedNo uint64
	Changed uint64
}

// Answer is what a player says to a proposed match.
type Answer uint8

// The answers.
const (
	NoAnswer Answer = iota
	Accepted
	Rejected
)

// Outcome is what a match has brought a ticket.
type Outcome struct {
	Match    string
	Team     string        // of all its players; empty in a backfill ticket, whose players have their own
	Answers  []byte        // an Answer for each player; empty: nobody has said anything
	Sessions []domain.UUID // a player session for each player, once placed

	Game       string
	GameRegion string
	IPAddress  string
	DNSName    string
	Port       uint16
}

// Answer is what a player of the ticket has said.
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

// RuleCount is how often a rule held and failed while a match was looked for.
type RuleCount struct {
	Rule           int32 // its place in the rule set
	Passed, Failed uint64
}

// Match is a proposal on its way: until all have accepted, and then until its game session is there.
type Match struct {
	ID         string // a UUID; also the id of its placement and the name of its game session
	Of         *Configuration
	Seats      []Seat // by the age of the tickets
	Proposed   domain.Time
	AcceptBy   domain.Time // 0: nobody is asked (any more)
	PlayersMax int32       // of the game session: all slots of the rule set at the candidate's age
	Region     string      // that suits all; with STANDALONE
	Counts     []RuleCount

	Changed uint64
}

// Backfill is the seat of the match's backfill ticket.
func (m *Match) Backfill() (Seat, bool) {
	for _, s := range m.Seats {
		if s.Team == "" {
			return s, true
		}
	}
	return Seat{}, false
}

// Update is what a server process is told about its backfill.
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

// Hosted is a game session that came of a match, as long as it lives.
type Hosted struct {
	Game   string // its id
	Match  string // that started it
	Of     *Configuration
	Roster string // its players by the latest match data, with their teams and the values that were used

	Automatic bool // an automatic backfill follows while slots are free

	// What its server process has to be told, until it was: at least once.
	Updates uint64 // counts them
	Told    uint64
	Why     Update
	Ticket  string // of the latest update

	Changed uint64
}
