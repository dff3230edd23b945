package ruleset

import (
	"cmp"
	"slices"
)

// RuleSet is a valid rule set, compiled. It does not change, and any number of readers may share it.
type RuleSet struct {
	Name       string // a label without effect
	Attributes []Attribute
	Algorithm  Algorithm
	Teams      []Team  // definitions with a quantity unrolled, in the rule set's order
	Rules      []*Rule // as they stand at first: names, types and places are the same at all levels
	Large      bool    // more than 40 players, at the largest
	PlayersMax int32   // the largest number of players a match can have, over all levels
	PartyMax   int32   // the largest team, over all levels: no larger party is ever matched

	levels []*Level
	waits  []int32
	column map[string]int
}

// Team is one team.
type Team struct {
	Name       string
	Definition string // the name in the rule set: another one if the definition has a quantity
}

// Algorithm says how matches are looked for.
type Algorithm struct {
	Balanced         bool // strategy balanced; else exhaustiveSearch
	Batching         Batching
	SortBy           []int // columns, for Sorted
	BalancedColumn   int   // for Balanced; -1 without
	BackfillPriority Priority
	OldestAge        bool // the oldest ticket's age counts for expansions; else the newest's
}

// Batching is how the pool is cut.
type Batching uint8

// The preferences: two for exhaustiveSearch, two for balanced.
const (
	Random Batching = iota + 1
	Sorted
	LargestPopulation
	FastestRegion
)

// Priority is the place of backfill tickets among the others.
type Priority uint8

// The priorities.
const (
	Normal Priority = iota
	High
	Low
)

// Level is the rule set as it stands from one wait to the next.
type Level struct {
	Wait    int32  // seconds
	Teams   []Size // one for each of RuleSet.Teams
	Rules   []*Rule
	Minimum int32 // players that a match has at least: the sum over the teams
	Slots   int32 // and at most

	Changes []Change // what the steps of this wait put in place of what stood before, in words for people

	set   *RuleSet
	sizes []Size // by definition
}

// Change is a property that a step has changed.
type Change struct {
	Property string // "rules[Near].maxDistance"
	From, To string // as the rule set writes them, cut when they are long; From is empty if the property was not there
}

// Size is how many players a team has.
type Size struct{ Min, Max int32 }

// Waits are the ages, in seconds, at which something changes; strictly increasing, the first is 0.
func (rs *RuleSet) Waits() []int32 { return rs.waits }

// Level returns the rule set as it stands from Waits()[i] on.
func (rs *RuleSet) Level(i int) *Level { return rs.levels[i] }

// LevelAt returns the level of an age in seconds.
func (rs *RuleSet) LevelAt(age int64) int {
	i, reached := slices.BinarySearchFunc(rs.waits, age, func(wait int32, age int64) int { return cmp.Compare(int64(wait), age) })
	if !reached {
		i--
	}
	return max(i, 0)
}

// Column returns the place of a declared attribute.
func (rs *RuleSet) Column(name string) (column int, ok bool) {
	column, ok = rs.column[name]
	return column, ok
}
