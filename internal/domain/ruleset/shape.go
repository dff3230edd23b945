package ruleset

// Pattern is a form that many rules have, and for which a matcher can keep indexes and running counts.
type Pattern uint8

// The patterns. "A" is the shape's Column, "B" its Other. All but the last group can reject a candidate under
// construction: no later ticket repairs them.
const (
	General Pattern = iota // evaluate it

	PlayerLiteral  // comparison: A of each player (of the teams) stands in the relation to Literal; numbers, strings
	PlayersEqual   // comparison without reference: all players (of the teams) have the same A
	PlayersDiffer  // comparison without reference: no two have the same A
	Spread         // distance: the highest A of all players less the lowest is at most Max
	CommonValues   // collection: at least Min strings are in the A of all players (of the teams)
	ContainsAtMost // collection: at most Max players' A contain, or are, Literal; its least count, if any, is for the end
	AllAccept      // collection: each player's A has at least Min strings of those that are in the B of everybody
	NoneBlocks     // collection: each player's A has at most Max strings of the ids of all players

	TeamMeans // distance: the average A of each team is at most Max from the average of all players; only at the end
	TeamSizes // comparison: the sizes of two teams, Column and Other; only at the end
)

// Shape says which pattern a measurement follows, and with what.
type Shape struct {
	Pattern Pattern
	Column  int
	Other   int
	Teams   []int // the teams whose players count; for all teams, all of them
	All     bool  // Teams are all teams
}
