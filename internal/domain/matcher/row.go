package matcher

import (
	"math"
	"slices"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

// mixed is the word of featureEqual when the players differ, or before a player has joined. No number has these bits, and no text this
// index.
const mixed = ^uint64(0)

// fillRow computes the features of players who join together.
func (m *Matcher) fillRow(row []uint64, players []ruleset.Player) {
	for i := range m.plan.features {
		f := &m.plan.features[i]
		switch f.kind {
		case featureRange:
			lowest, highest := players[0].Values[f.column].Number, players[0].Values[f.column].Number
			for p := range players {
				x := players[p].Values[f.column].Number
				lowest, highest = min(lowest, x), max(highest, x)
			}
			row[f.word], row[f.word+1] = floatBits(lowest), floatBits(highest)
		case featureParty:
			x := partyNumber(f.party, f.column, players)
			row[f.word], row[f.word+1] = floatBits(x), floatBits(x)
			if math.IsNaN(x) || math.IsInf(x, 0) { // the average of huge numbers can overflow: such a ticket is near no other
				row[f.word], row[f.word+1] = floatBits(math.Inf(-1)), floatBits(math.Inf(1))
			}
		case featureEqual:
			row[f.word] = m.equalWord(f.column, players)
		case featureCount:
			row[f.word] = countWith(f.column, f.text, players)
		case featureRegions:
			row[f.word] = m.pool.regions.within(f.most, players)
		}
	}
}

func partyNumber(party ruleset.Aggregation, column int, players []ruleset.Player) float64 {
	if len(players) == 1 {
		return players[0].Values[column].Number
	}
	var numbers []float64
	for p := range players {
		numbers = append(numbers, players[p].Values[column].Number)
	}
	return party.Of(numbers)
}

func (m *Matcher) equalWord(column int, players []ruleset.Player) uint64 {
	first := &players[0].Values[column]
	for p := range players[1:] {
		v := &players[p+1].Values[column]
		if v.Number != first.Number || v.Text != first.Text {
			return mixed
		}
	}
	if m.rules.Attributes[column].Kind == ruleset.Number {
		return floatBits(first.Number)
	}
	return m.pool.texts.take(first.Text)
}

func countWith(column int, text string, players []ruleset.Player) (n uint64) {
	for p := range players {
		v := &players[p].Values[column]
		if v.Kind == ruleset.String && v.Text == text || v.Kind == ruleset.List && slices.Contains(v.List, text) {
			n++
		}
	}
	return n
}

// literalBits returns which of the plan's comparisons hold for every player.
func (m *Matcher) literalBits(players []ruleset.Player) (bits uint64) {
	for i := range m.plan.literals {
		l := &m.plan.literals[i]
		all := true
		for p := range players {
			v := &players[p].Values[l.column]
			if v.Kind == ruleset.Number {
				all = all && (l.value.Kind == ruleset.Number && l.operation.Holds(v.Number, l.value.Number, false))
			} else {
				all = all && (l.value.Kind == ruleset.String && l.operation.HoldsText(v.Text, l.value.Text))
			}
		}
		if all {
			bits |= 1 << i
		}
	}
	return bits
}

// giveBackRows releases the texts of a ticket.
func (m *Matcher) giveBackRows(slot int32) {
	m.giveBackRow(m.row(slot))
	if r := m.pool.records[slot].roster; r != nil {
		for i := range r.parts {
			m.giveBackRow(r.parts[i].row)
		}
	}
}

func (m *Matcher) giveBackRow(row []uint64) {
	for i := range m.plan.features {
		f := &m.plan.features[i]
		if f.kind == featureEqual && row[f.word] != mixed && m.rules.Attributes[f.column].Kind == ruleset.String {
			m.pool.texts.giveBack(row[f.word])
		}
	}
}

// textTable numbers texts, equal ones equally, and drops those that no ticket has.
type textTable struct {
	numbers map[string]uint64
	texts   []countedText
	free    []uint64
}

type countedText struct {
	text  string
	users int
}

func (t *textTable) take(text string) uint64 {
	if n, ok := t.numbers[text]; ok {
		t.texts[n].users++
		return n
	}
	if t.numbers == nil {
		t.numbers = map[string]uint64{}
	}
	var n uint64
	if last := len(t.free) - 1; last >= 0 {
		n, t.free = t.free[last], t.free[:last]
	} else {
		n = uint64(len(t.texts))
		t.texts = append(t.texts, countedText{})
	}
	t.texts[n] = countedText{text, 1}
	t.numbers[text] = n
	return n
}

func (t *textTable) giveBack(n uint64) {
	if t.texts[n].users--; t.texts[n].users == 0 {
		delete(t.numbers, t.texts[n].text)
		t.texts[n].text = ""
		t.free = append(t.free, n)
	}
}
