package matcher

import "github.com/musterhq/muster/internal/domain"

// Explanation says why a ticket waits. Making it changes nothing.
type Explanation struct {
	Key         uint64
	Waited      int64       // seconds
	Level       int         // of the rule set, by the ticket's own age
	Unmatchable string      // what no partner and no wait can help, in words; "" for most
	Alone       []Objection // rules that reject the ticket by itself at this level
	Backfill    bool
	Needed      int32       // players that a match has at least, at this level
	Players     int32       // of the ticket
	Others      int         // tickets in the pool besides it
	Now         Partners    // as things are
	Oldest      []Partner   // the oldest other tickets, one by one
	Together    []Objection // rules that reject the first match of the possible partners that would be large enough
	Effort      Effort      // how hard a match was looked for around it, or around one that no rule can tell from it
	Turns       int         // while Effort is Continued: how often that search has gone on
	Counts      []RuleCount // how often each rule was evaluated with it
	Steps       []Step      // what waiting changes, the next first
}

// Partners says who can be in a match with the ticket, pair by pair.
type Partners struct {
	Looked   int         // other tickets that were looked at: the oldest, up to a limit
	More     bool        // there are others that the limit left out
	Possible int         // with whom nothing stands against a match yet
	Players  int32       // of those
	Rejected []Rejection // in the rule set's order; rules without rejections are left out
	NoRoom   int         // who find no room on a team beside it, or are a backfill as it is one
}

// Rejection is how many partners a rule rejects. A partner may be rejected by several.
type Rejection struct {
	Rule    int
	Tickets int
	With    uint64 // the oldest of them
	Reason  string // what the rule says against that one, with the values
}

// Objection is a rule that rejects, and why in words, with the values.
type Objection struct {
	Rule   int
	Reason string
}

// Partner is one other ticket.
type Partner struct {
	Key      uint64
	Level    int // of a match of the two
	Possible bool
	Rejected []Objection // the rules that stand against the two
	NoRoom   bool
}

// Step is a wait of the rule set that the ticket has not reached.
type Step struct {
	At       domain.Time // when the ticket reaches it
	Level    int
	Rules    []int    // that differ from the level before
	Teams    []int    // whose size differs
	Partners Partners // then, if nobody came and nobody left; only of the next few steps
}

const (
	explainLooked = 2000 // other tickets
	explainOldest = 10   // of them one by one
	explainSteps  = 4    // with their partners
	explainEnded  = 100  // other tickets, for one that leaves the pool
)
