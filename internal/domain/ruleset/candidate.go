package ruleset

// Candidate is a possible match: the players of each of RuleSet.Teams, by the age of their tickets and then in the ticket's order, so
// that sums are the same everywhere.
type Candidate struct {
	Teams [][]Player
}

// Player is one player of a candidate.
type Player struct {
	ID        string
	Ticket    int     // the same for the players of one ticket
	Values    []Value // one for each of RuleSet.Attributes, as RuleSet.Player gives them
	Latencies []RegionLatency
}

// RegionLatency is a player's latency to one region.
type RegionLatency struct {
	Region       string
	Milliseconds int32
}

// Verdict is the result of a rule for a candidate.
type Verdict uint8

// Undefined: a value that the rule needs does not exist, for example the average of an empty team.
const (
	Undefined Verdict = iota
	Fails
	Holds
)
