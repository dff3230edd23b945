package matcher

import "github.com/musterhq/muster/internal/domain"

// Explanation says why a ticket waits. It looks at the pool as it is, and changes nothing.
type Explanation struct {
	Key         uint64
	Waited      int64    // seconds
	Level       int      // of the rule set, by the ticket's own age
	Unmatchable []string // what no partner and no wait can help, in words; empty for most
	Alone       []int    // rules that reject the ticket by itself at this level
	Needed      int32    // players a match has at least, at this level
	Pool        int      // other tickets in the pool, those included that are unmatchable
	Now         Partners // at the ticket's present level
	Oldest      []Partner
	Counts      []RuleCount
	Steps       []Step // what waiting changes: all that is still to come, the next first
}

// Partners says who can be in a match with the ticket, pair by pair.
type Partners struct {
	Looked   int         // other tickets that were looked at: the oldest, up to a limit
	Possible int         // with whom no rule stands against a match yet
	Players  int32       // of those
	Rejected []Rejection // by rule, in the rule set's order; rules without rejections are left out
	Together []int       // rules that reject the match of the ticket with the first possible partners, where there are enough
}

// Rejection is how many partners a rule rejects.
type Rejection struct {
	Rule    int
	Tickets int
}

// Partner is one of the oldest other tickets.
type Partner struct {
	Key      uint64
	Possible bool
	Rejected []int  // the rules that stand against the pair
	Other    string // what stands against it besides rules: "no team has room for both", …; "" for none
}

// Step is a wait of the rule set that the ticket has not reached.
type Step struct {
	At      domain.Time // when the ticket reaches it
	Level   int
	Rules   []int // that differ from the level before
	Teams   []int // whose size differs
	Partner Partners
}
