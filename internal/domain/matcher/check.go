package matcher

import "github.com/musterhq/muster/internal/domain/ruleset"

// check is a condition that no later ticket can repair, so the search gives up a candidate that fails it. Its state is a few words of the
// candidate's state.
type check struct {
	kind   checkKind
	soft   bool // of a part of compound rules: failing sets a bit, and the compound rules decide
	rule   int
	bit    uint64 // of a soft check
	word   int    // of the ticket's row
	state  int    // first word of the candidate's state
	most   float64
	least  int
	teams  uint64 // whose players count, a bit for each
	column int
	other  int
	// computed: the numbers are averages, which count as equal within a tolerance
	computed bool
}

type checkKind uint8

const (
	checkSpread  checkKind = iota + 1 // highest less lowest value; most
	checkEqual                        // one value
	checkRegions                      // a region is left
	checkCount                        // a sum; most
	checkLiteral                      // a bit of the ticket; bit number in word
	checkDiffer                       // no value twice; column
	checkCommon                       // strings in the lists of all; column, least
	checkAccept                       // strings of each player's list (column) in the lists of all (other); least
	checkBlock                        // strings of each player's list (column) that are ids of players; most
)

// stateWords returns the size of a check's state.
func (c *check) stateWords() int {
	switch c.kind {
	case checkSpread, checkRegions:
		return 2
	case checkEqual, checkCount, checkCommon, checkAccept:
		return 1
	}
	return 0
}

// levelBuilder makes the checks of one level.
type levelBuilder struct {
	p     *plan
	l     levelPlan
	softs int
}

// maxSofts is the number of bits for checks of parts of compound rules. Rules beyond are judged only on complete candidates.
const maxSofts = 64

func (b *levelBuilder) rule(i int, rule *ruleset.Rule) {
	plan := &b.l.rules[i]
	if _, isSort := rule.Form.(*ruleset.Sort); isSort {
		return
	}
	if !rule.Replaced {
		b.l.required = append(b.l.required, i)
	}
	switch form := rule.Form.(type) {
	case *ruleset.Compound:
		if !rule.Replaced {
			b.l.compounds = append(b.l.compounds, i)
		}
	case *ruleset.Latency:
		most := noLimit
		if form.HasLatency {
			most = form.MaxLatency
		}
		exact := b.p.room(feature{kind: featureRegions, most: most})
		if !exact {
			most = noLimit
		}
		word := b.p.feature(feature{kind: featureRegions, most: most})
		plan.covered = b.add(i, check{kind: checkRegions, word: word, most: most, teams: allTeams}) && exact && !form.HasDistance
	case *ruleset.BatchDistance:
		c := check{kind: checkEqual, teams: allTeams}
		if form.Kind == ruleset.Number {
			c.kind, c.most, c.computed = checkSpread, form.MaxDistance, form.Party == ruleset.Avg
			c.word = b.p.feature(feature{kind: featureParty, column: form.Column, party: form.Party})
		} else {
			c.word = b.p.feature(feature{kind: featureEqual, column: form.Column})
		}
		plan.covered = b.add(i, c)
	default:
		if !b.p.rules.Large {
			plan.covered = b.shapes(i, rule)
		}
	}
}

// shapes adds checks for the measurements of known patterns, and reports whether these cover the whole rule.
func (b *levelBuilder) shapes(i int, rule *ruleset.Rule) (covered bool) {
	covered = len(rule.Shapes) > 0
	for _, shape := range rule.Shapes {
		c, all, ok := b.shape(rule, shape)
		if !ok || !b.add(i, c) {
			covered = false
			continue
		}
		covered = covered && all
	}
	if len(rule.Shapes) == 1 {
		switch p := rule.Shapes[0].Pattern; p {
		case ruleset.TeamMeans, ruleset.TeamSizes:
			b.l.rules[i].quick = p
		}
	}
	return covered
}

// shape makes the check of a measurement. all: the check covers the measurement, provided that its teams have players.
func (b *levelBuilder) shape(rule *ruleset.Rule, shape ruleset.Shape) (c check, all, ok bool) {
	c = check{teams: allTeams, column: shape.Column, other: shape.Other}
	if !shape.All {
		c.teams = 0
		for _, t := range shape.Teams {
			c.teams |= 1 << t
		}
	}
	switch form := rule.Form.(type) {
	case *ruleset.Comparison:
		return b.comparison(c, form, shape)
	case *ruleset.Distance:
		if shape.Pattern != ruleset.Spread || !form.Bounds.HasMax {
			return c, false, false
		}
		c.kind, c.most = checkSpread, form.Bounds.Max
		c.word = b.p.feature(feature{kind: featureRange, column: shape.Column})
		return c, shape.All, true
	case *ruleset.Collection:
		return b.collection(c, form, shape)
	}
	return c, false, false
}

func (b *levelBuilder) comparison(c check, form *ruleset.Comparison, shape ruleset.Shape) (_ check, all, ok bool) {
	switch shape.Pattern {
	case ruleset.PlayerLiteral:
		bit, ok := b.p.literal(literal{shape.Column, form.Operation, form.Reference.Literal})
		c.kind, c.word = checkLiteral, bit
		return c, true, ok
	case ruleset.PlayersEqual:
		c.kind = checkEqual
		c.word = b.p.feature(feature{kind: featureEqual, column: shape.Column})
		return c, true, true
	case ruleset.PlayersDiffer:
		c.kind = checkDiffer
		return c, true, true
	}
	return c, false, false
}

func (b *levelBuilder) collection(c check, form *ruleset.Collection, shape ruleset.Shape) (_ check, all, ok bool) {
	bounds := form.Bounds
	switch shape.Pattern {
	case ruleset.CommonValues:
		c.kind, c.least = checkCommon, atLeast(bounds)
		return c, shape.All && !bounds.HasMax, bounds.HasMin
	case ruleset.ContainsCount:
		c.kind, c.most = checkCount, bounds.Max
		f := feature{kind: featureCount, column: shape.Column, text: form.Reference.Literal.Text}
		if !bounds.HasMax || !b.p.room(f) {
			return c, false, false
		}
		c.word = b.p.feature(f)
		return c, atLeast(bounds) == 0, true
	case ruleset.AllAccept:
		c.kind, c.least = checkAccept, atLeast(bounds)
		return c, shape.All && !bounds.HasMax, bounds.HasMin && shape.All
	case ruleset.NoneBlocks:
		c.kind, c.most = checkBlock, bounds.Max
		return c, atLeast(bounds) == 0, bounds.HasMax && shape.All
	}
	return c, false, false
}

func atLeast(b ruleset.Bounds) int {
	if !b.HasMin || b.Min <= 0 {
		return 0
	}
	return int(b.Min)
}

// add puts a check in its place. It returns false if there is no room.
func (b *levelBuilder) add(rule int, c check) bool {
	c.rule = rule
	if b.p.rules.Rules[rule].Replaced {
		if b.softs == maxSofts {
			return false
		}
		c.soft, c.bit = true, 1<<b.softs
		b.softs++
		b.l.rules[rule].fails |= c.bit
	}
	if c.teams == allTeams {
		b.l.whole = append(b.l.whole, c)
	} else {
		b.l.byTeam = append(b.l.byTeam, c)
		b.l.rules[rule].byTeam = true
	}
	return true
}

// The first word of a candidate's state has the bits of failed soft checks of whole tickets. The first word that checks by team change
// has the bits of theirs.
func (b *levelBuilder) finish() {
	b.l.words = 1
	place := func(checks []check) {
		for i := range checks {
			checks[i].state = b.l.words
			b.l.words += checks[i].stateWords()
		}
	}
	sortByCost(b.l.whole)
	place(b.l.whole)
	b.l.teamWord = b.l.words
	b.l.words++
	place(b.l.byTeam)
	b.l.alike = alikeTeams(b.l.level)
	b.l.teamless = b.l.tellsNoTeams()
	reads(b.l.level, func(e *ruleset.Expr) { b.p.ids = b.p.ids || e.Op == ruleset.OpPlayerIDs })
}
