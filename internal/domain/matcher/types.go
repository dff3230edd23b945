package matcher

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// Config is what a matcher needs besides its rule set.
type Config struct {
	Name              string // of the matchmaking configuration; it seeds random orders
	AdditionalPlayers int32  // slots that a new match keeps free

	// Budget is the most rule evaluations that the search around one ticket may spend on backtracking. They are counted, not timed, so
	// that runs are repeatable. Zero is 20,000. The first, greedy walk is not limited by it.
	Budget int

	// Work is the most steps of one call of Pass, which leaves the rest to the next; a step takes about as long as a check of one ticket.
	// Zero is 1,000,000, a fraction of a second.
	Work int
}

const (
	defaultBudget = 20_000
	defaultWork   = 1_000_000
)

// Ticket is one request: of players who stay together, or for a running game session that has room.
type Ticket struct {
	Key       uint64 // the caller's, unique in the pool
	Start     domain.Time
	No        uint64 // orders tickets of the same instant
	Backfill  bool
	FreeSlots int32 // of a backfill: newcomers that the game session takes; 0: none for now; -1: as many as the rule set allows
	Players   []Player
}

// Player is one player of a ticket.
type Player struct {
	ID         string
	Team       string // of a backfill's roster
	Attributes []ruleset.NamedValue
	Latencies  []Latency
}

// Latency is a player's latency to one region.
type Latency struct {
	Region       string
	Milliseconds int32
}

// Proposal is a legal match. Its tickets have left the pool; a caller that does not commit it adds them again.
type Proposal struct {
	Tickets    []uint64    // by age
	Teams      [][]Seat    // one for each team of the rule set; players by the age of their tickets
	Level      int         // of the rule set, by the match's age
	Players    int32       // in the match, a roster included
	MaxPlayers int32       // the sum over the teams at that level
	Region     string      // the one with the lowest average latency of those that all players reported and the latency rules allow; "" without
	Counts     []RuleCount // of all its tickets together
}

// Seat is a player's place in a match.
type Seat struct {
	Ticket int32 // index into Proposal.Tickets
	Player int32 // index into that ticket's players
}

// RuleCount counts evaluations of a rule with a ticket, by result.
type RuleCount struct {
	Rule           int // index into the rule set's rules
	Passed, Failed uint64
}

// Stats has counts since the matcher was created, and the present size of the pool.
type Stats struct {
	Tickets     int
	Players     int
	Unmatchable int    // tickets that can never match: a value is missing, or the party is too large
	Waiting     int    // tickets that the next pass will search around
	Passes      uint64 // calls of Pass
	Searches    uint64 // searches around a ticket
	Steps       uint64 // the work done, in the unit of Config.Work
	Evaluations uint64 // of rules
	Exhausted   uint64 // searches that exhausted their budget
	Unfinished  int    // tickets whose search will be continued
	Continued   uint64 // continued searches
	CutShort    uint64 // passes that reached the bound on their work
	Proposals   uint64
	Matched     uint64 // tickets in proposals
}
