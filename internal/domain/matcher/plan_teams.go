package matcher

import (
	"math"
	"slices"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

const allTeams = ^uint64(0)

var noLimit = math.Inf(1)

// sortByCost puts checks that read one word first, and hard checks before soft ones.
func sortByCost(checks []check) {
	cost := func(c check) int {
		at := int(c.kind)
		if c.soft {
			at += 1 << 8
		}
		return at
	}
	slices.SortStableFunc(checks, func(a, b check) int { return cost(a) - cost(b) })
}

// reads calls f with the read of every expression of a level's rules.
func reads(level *ruleset.Level, f func(*ruleset.Expr)) {
	expr := func(e *ruleset.Expr) {
		if e != nil {
			f(e.Read())
		}
	}
	for _, rule := range level.Rules {
		var measurements []*ruleset.Expr
		switch form := rule.Form.(type) {
		case *ruleset.Comparison:
			measurements = form.Measurements
			expr(form.Reference.Expr)
		case *ruleset.Distance:
			measurements = form.Measurements
			expr(form.Reference.Expr)
		case *ruleset.Collection:
			measurements = form.Measurements
			expr(form.Reference.Expr)
		}
		for _, e := range measurements {
			expr(e)
		}
	}
}

// alikeTeams returns for each team the first one of the same size that no rule distinguishes from it: while both are empty, they are
// interchangeable.
func alikeTeams(level *ruleset.Level) []int {
	var selections [][]int
	reads(level, func(e *ruleset.Expr) { selections = append(selections, e.Teams) })
	alike := make([]int, len(level.Teams))
	for i := range level.Teams {
		alike[i] = i
		for j := range i {
			same := level.Teams[i] == level.Teams[j] && alike[j] == j
			for _, s := range selections {
				same = same && slices.Contains(s, i) == slices.Contains(s, j)
			}
			if same {
				alike[i] = j
				break
			}
		}
	}
	return alike
}
