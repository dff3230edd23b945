package matcher

import "github.com/musterhq/muster/internal/domain"

// Explanation explains why a ticket waits. Making one does not change the pool.
type Explanation struct {
	Key         uint64
	Waited      int64       // seconds
	Level       int         // of the rule set, by the ticket's own age
	Unmatchable string      // a reason that no partner and no wait can remove, in words; "" for most
	Alone       []Objection // rules that reject the ticket by itself at this level
	Backfill    bool
	Needed      int32       // the fewest players of a match at this level
	Players     int32       // of the ticket
	Others      int         // tickets in the pool besides it
	Now         Partners    // at present
	Oldest      []Partner   // the oldest other tickets, each by itself
	Together    []Objection // rules that reject the first large enough match of possible partners
	Effort      Effort      // how far the search around it went, or around a ticket that no rule can distinguish from it
	Turns       int         // while Effort is Continued: how often the search was continued
	Counts      []RuleCount // how often each rule was evaluated with it
	Steps       []Step      // future levels of the ticket, the next first
}

// Partners counts which other tickets can be in a match with the ticket, pair by pair.
type Partners struct {
	Looked   int         // other tickets that were judged: the oldest, up to a limit
	More     bool        // the limit left out others
	Possible int         // those with which no rule rejects a match yet
	Players  int32       // of those
	Rejected []Rejection // in the rule set's order; rules without rejections are left out
	NoRoom   int         // those with no room on a team beside it, or backfills if it is a backfill
}

// Rejection is how many partners a rule rejects. A partner may be rejected by several.
type Rejection struct {
	Rule    int
	Tickets int
	With    uint64 // the oldest of them
	Reason  string // why the rule rejects that one, with the values
}

// Objection is a rule that rejects, with the reason in words and the values.
type Objection struct {
	Rule   int
	Reason string
}

// Partner is one other ticket.
type Partner struct {
	Key      uint64
	Level    int // of a match of the two
	Possible bool
	Rejected []Objection // the rules that reject the two
	NoRoom   bool
}

// Step is a wait time of the rule set that the ticket has not reached.
type Step struct {
	At       domain.Time // when the ticket reaches it
	Level    int
	Rules    []int    // that differ from the level before
	Teams    []int    // whose size differs
	Partners Partners // at that time, with the same tickets in the pool; only for the next few steps
}

const (
	explainLooked = 2000 // other tickets
	explainOldest = 10   // of them each by itself
	explainSteps  = 4    // with their partners
	explainEnded  = 100  // other tickets, for one that leaves the pool
)
