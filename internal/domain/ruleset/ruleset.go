package ruleset

import (
	"cmp"
	"slices"
)

// RuleSet is a valid, compiled rule set. It is immutable and safe for concurrent use.
type RuleSet struct {
	Name       string // a label without effect
	Attributes []Attribute
	Algorithm  Algorithm
	Teams      []Team  // definitions with a quantity unrolled, in the rule set's order
	Rules      []*Rule // at the first level; names, types and indexes are the same at all levels
	Large      bool    // the largest match has more than 40 players
	PlayersMax int32   // the largest number of players a match can have, over all levels
	PartyMax   int32   // the largest team, over all levels; a larger party can never match

	levels []*Level
	waits  []int32
	column map[string]int
}

// Team is one team.
type Team struct {
	Name       string
	Definition string // the name in the rule set, which differs if the definition has a quantity
}

// Algorithm defines how to search for matches.
type Algorithm struct {
	Balanced         bool // strategy balanced; else exhaustiveSearch
	Batching         Batching
	BalancedColumn   int // for Balanced; -1 without
	BackfillPriority Priority
	OldestAge        bool // the oldest ticket's age counts for expansions; else the newest's
}

// Batching defines how the pool is divided. For exhaustiveSearch it has no effect: the matcher searches the whole pool (B125).
type Batching uint8

// The preferences: two for exhaustiveSearch, two for balanced.
const (
	Random Batching = iota + 1
	Sorted
	LargestPopulation
	FastestRegion
)

// Priority defines how backfill tickets are ordered among the others.
type Priority uint8

// The priorities.
const (
	Normal Priority = iota
	High
	Low
)

// Level is the rule set from one wait time to the next.
type Level struct {
	Wait    int32  // seconds
	Teams   []Size // one for each of RuleSet.Teams
	Rules   []*Rule
	Minimum int32 // the fewest players of a match: the sum over the teams
	Slots   int32 // the most players of a match

	Changes []Change // what the steps of this wait time replace, in words

	set   *RuleSet
	sizes []Size // by definition
}

// Change is a property that a step has changed.
type Change struct {
	Property string // "rules[Near].maxDistance"
	From, To string // as the rule set has them, cut if they are long; From is empty if the property was missing
}

// Size bounds the number of players of a team.
type Size struct{ Min, Max int32 }

// Waits returns the ages, in seconds, at which something changes; strictly increasing, the first is 0.
func (rs *RuleSet) Waits() []int32 { return rs.waits }

// Level returns the rule set from Waits()[i] on.
func (rs *RuleSet) Level(i int) *Level { return rs.levels[i] }

// LevelAt returns the level of an age in seconds.
func (rs *RuleSet) LevelAt(age int64) int {
	i, reached := slices.BinarySearchFunc(rs.waits, age, func(wait int32, age int64) int { return cmp.Compare(int64(wait), age) })
	if !reached {
		i--
	}
	return max(i, 0)
}

// Column returns the index of a declared attribute.
func (rs *RuleSet) Column(name string) (column int, ok bool) {
	column, ok = rs.column[name]
	return column, ok
}
