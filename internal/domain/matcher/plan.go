package matcher

import (
	"math"
	"slices"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

// plan is a rule set as the matcher uses it: which numbers of a ticket are precomputed (features), by which of them the pool is sorted,
// and which checks each level makes when a ticket joins a candidate.
type plan struct {
	rules    *ruleset.RuleSet
	features []feature
	words    int // of a row
	literals []literal
	levels   []levelPlan
	sorts    []int // the sort rules
	latency  bool  // there is a latency rule
	ids      bool  // a rule reads the ids of players

	equals   []int // words of features that must be equal within a match at every level; the pool is split by them
	equalsBy []int // the rule of each
	near     int   // word of the feature by which the pool is sorted; -1 without
	nearRule int
	widths   []float64 // of the cells into which it is sorted, ascending
	place    int       // word of the value that determines the cell: any between the ticket's lowest and highest
	ring     bool      // it is also the first value by which the sort rules sort, the nearest first
}

// feature is a property of a ticket's players that the checks read: one or two words of its row.
type feature struct {
	kind   featureKind
	column int
	party  ruleset.Aggregation
	text   string  // of featureCount
	most   float64 // of featureRegions
	word   int
}

type featureKind uint8

const (
	featureRange   featureKind = iota + 1 // lowest and highest value: two words, bits of floats
	featureParty                          // the same, of the party's aggregate
	featureEqual                          // the value that all players share, or mixed
	featureCount                          // the number of players who have the text, or have it in their list
	featureRegions                        // a bit for each region with at most `most` milliseconds for every player
)

// literal is a comparison of one player's value: a bit of every ticket.
type literal struct {
	column    int
	operation ruleset.Operation
	value     ruleset.Value
}

// maxLiterals is the number of comparisons with a bit; further ones are judged only on complete candidates.
const maxLiterals = 64

// maxEquals is the most features by which the pool is split.
const maxEquals = 3

// levelPlan is a level as the matcher checks it.
type levelPlan struct {
	level *ruleset.Level
	index int
	// Checks of the ticket as a whole, which do not depend on its team, and those that do.
	whole, byTeam []check
	words         int // of a candidate's state
	teamWord      int // the first word that checks by team change
	rules         []rulePlan
	required      []int // rules that must hold
	compounds     []int // required compound rules whose parts have checks
	target        int32 // players of a full new match
	spread        float64
	teamless      bool  // no rule depends on teams
	alike         []int // for each team, the first team that it is interchangeable with
}

// rulePlan defines how a rule is judged on a complete candidate.
type rulePlan struct {
	covered bool   // the rule holds if none of its checks has failed
	fails   uint64 // bits of its checks that fail softly, because it is part of a compound rule
	byTeam  bool   // some of them depend on the team; a roster is on several at once
	quick   ruleset.Pattern
}

func newPlan(rules *ruleset.RuleSet, additional int32) *plan {
	p := &plan{rules: rules, near: -1}
	for i, r := range rules.Rules {
		switch r.Form.(type) {
		case *ruleset.Sort:
			p.sorts = append(p.sorts, i)
		case *ruleset.Latency:
			p.latency = true
		}
	}
	for i := range rules.Waits() {
		p.levels = append(p.levels, p.planLevel(i, additional))
	}
	p.chooseIndexes()
	p.chooseRing()
	return p
}

func (p *plan) planLevel(index int, additional int32) levelPlan {
	level := p.rules.Level(index)
	b := levelBuilder{p: p, l: levelPlan{level: level, index: index, target: level.Slots - additional}}
	b.l.rules = make([]rulePlan, len(level.Rules))
	for i, rule := range level.Rules {
		b.rule(i, rule)
	}
	b.finish()
	return b.l
}

// feature returns the word of a feature, and adds a new one.
func (p *plan) feature(f feature) int {
	for i := range p.features {
		known := p.features[i]
		known.word = 0
		if known == f {
			return p.features[i].word
		}
	}
	f.word = p.words
	p.words++
	if f.kind == featureRange || f.kind == featureParty {
		p.words++
	}
	p.features = append(p.features, f)
	return f.word
}

// maxVariants is the most features of a kind that differ only by a bound or a text. Each takes memory in every ticket, and an expansion
// could need thousands; rules beyond are judged only on complete candidates.
const maxVariants = 16

// room reports whether a feature exists or can be added.
func (p *plan) room(f feature) bool {
	n := 0
	for i := range p.features {
		known := p.features[i]
		known.word = 0
		if known == f {
			return true
		}
		if known.kind == f.kind {
			n++
		}
	}
	return n < maxVariants
}

// literal returns the bit of a comparison, and adds a new one. It returns false if there are too many.
func (p *plan) literal(l literal) (bit int, ok bool) {
	for i, known := range p.literals {
		if known.column == l.column && known.operation == l.operation && known.value.Kind == l.value.Kind &&
			known.value.Number == l.value.Number && known.value.Text == l.value.Text {
			return i, true
		}
	}
	if len(p.literals) == maxLiterals {
		return 0, false
	}
	p.literals = append(p.literals, l)
	return len(p.literals) - 1, true
}

// chooseIndexes finds the checks that every level has, by which the pool may be split and sorted.
func (p *plan) chooseIndexes() {
	everywhere := func(kind checkKind, word int) (most []float64, ok bool) {
		for i := range p.levels {
			found := slices.IndexFunc(p.levels[i].whole, func(c check) bool { return c.kind == kind && c.word == word && !c.soft })
			if found < 0 {
				return nil, false
			}
			most = append(most, p.levels[i].whole[found].most)
		}
		return most, true
	}
	for _, c := range p.levels[0].whole {
		if c.soft {
			continue
		}
		switch c.kind {
		case checkEqual:
			if _, ok := everywhere(c.kind, c.word); ok && len(p.equals) < maxEquals && !slices.Contains(p.equals, c.word) {
				p.equals, p.equalsBy = append(p.equals, c.word), append(p.equalsBy, c.rule)
			}
		case checkSpread:
			if most, ok := everywhere(c.kind, c.word); ok && p.near < 0 {
				p.near, p.place, p.nearRule = c.word, c.word, c.rule
				p.widths = cellWidths(most)
				for i := range p.levels {
					p.levels[i].spread = most[i]
				}
			}
		}
	}
}

// ringCells is the number of cells in a distance when the nearest tickets come first: then a few cells around the anchor are enough.
const ringCells = 32

// chooseRing recognises rule sets that require tickets near the anchor and sort by the same attribute, nearest first.
func (p *plan) chooseRing() {
	if p.near < 0 || len(p.sorts) == 0 {
		return
	}
	first := p.rules.Rules[p.sorts[0]].Form.(*ruleset.Sort)
	for i := range p.levels {
		form := p.levels[i].level.Rules[p.sorts[0]].Form.(*ruleset.Sort)
		if !form.Distance || form.Descending || form.Kind != ruleset.Number || form.Party != first.Party || form.Column != first.Column {
			return
		}
	}
	at := slices.IndexFunc(p.features, func(f feature) bool { return f.word == p.near })
	if p.features[at].column != first.Column || p.features[at].kind != featureRange && p.features[at].party != first.Party {
		return
	}
	p.ring = true
	p.place = p.feature(feature{kind: featureParty, column: first.Column, party: first.Party})
	for i := range p.widths {
		p.widths[i] = max(minWidth, p.widths[i]/ringCells)
	}
}

const (
	minWidth  = 1e-3 // a distance of zero needs cells, too, wider than rounding errors
	maxWidths = 4
	widthStep = 4 // distances that differ by less than this factor share cells
)

// cellWidths chooses cells for the distances of all levels.
func cellWidths(most []float64) []float64 {
	sorted := slices.Sorted(slices.Values(most))
	var widths []float64
	for _, m := range sorted {
		w := math.Max(m, minWidth)
		if len(widths) == 0 || (len(widths) < maxWidths && w >= widthStep*widths[len(widths)-1]) {
			widths = append(widths, w)
		}
	}
	return widths
}

// widthFor returns the widths to use for a distance: the widest that does not exceed it.
func (p *plan) widthFor(distance float64) int {
	at := 0
	if p.ring {
		distance /= ringCells
	}
	for i, w := range p.widths {
		if w <= distance {
			at = i
		}
	}
	return at
}
