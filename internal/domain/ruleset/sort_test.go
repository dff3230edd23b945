package ruleset

import (
	"slices"
	"strings"
	"testing"
)

func TestSort(t *testing.T) {
	set := exampleSet(t)
	party := func(players ...NamedValue) (values [][]Value) {
		for _, p := range players {
			v, err := set.Player([]NamedValue{p})
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, v)
		}
		return values
	}
	skill := func(x float64) NamedValue { return NamedValue{"skill", Value{Kind: Number, Number: x}} }
	clan := func(s string) NamedValue { return NamedValue{"clan", Value{Kind: String, Text: s}} }
	maps := func(pairs ...Entry) NamedValue { return NamedValue{"maps", Value{Kind: Map, Map: pairs}} }
	for _, test := range []struct {
		rule    string
		anchor  [][]Value
		tickets map[string][][]Value
		want    string
	}{
		{`"type": "absoluteSort", "sortDirection": "ascending", "sortAttribute": "skill"`, party(skill(5)),
			map[string][][]Value{"a": party(skill(9)), "b": party(skill(0), skill(8)), "c": party(skill(5)), "none": party(clan("x"))}, "b c a none"},
		{`"type": "absoluteSort", "sortDirection": "descending", "sortAttribute": "skill", "partyAggregation": "max"`, party(skill(5)),
			map[string][][]Value{"a": party(skill(7)), "b": party(skill(0), skill(8)), "none": party(clan("x"))}, "b a none"},
		{`"type": "distanceSort", "sortDirection": "ascending", "sortAttribute": "skill"`, party(skill(5)),
			map[string][][]Value{"a": party(skill(9)), "b": party(skill(2)), "c": party(skill(6))}, "c b a"},
		{`"type": "distanceSort", "sortDirection": "descending", "sortAttribute": "skill"`, party(skill(5)),
			map[string][][]Value{"a": party(skill(9)), "b": party(skill(2)), "c": party(skill(6)), "none": party(clan("x"))}, "a b c none"},
		{`"type": "absoluteSort", "sortDirection": "ascending", "sortAttribute": "clan"`, party(clan("x")),
			map[string][][]Value{"a": party(clan("n")), "b": party(clan("m"), clan("z")), "none": party(skill(1))}, "b a none"},
		{`"type": "absoluteSort", "sortDirection": "descending", "sortAttribute": "maps", "mapKey": "maxValue"`, party(maps(Entry{"x", 1}, Entry{"y", 5}), maps(Entry{"x", 9})),
			map[string][][]Value{"a": party(maps(Entry{"x", 1}, Entry{"y", 9})), "b": party(maps(Entry{"x", 2})), "none": party(maps(Entry{"y", 9}))}, "b a none"},
		{`"type": "absoluteSort", "sortDirection": "ascending", "sortAttribute": "maps", "mapKey": "minValue"`, party(maps(Entry{"y", 1}, Entry{"x", 1})),
			map[string][][]Value{"a": party(maps(Entry{"x", 3})), "b": party(maps(Entry{"x", 2})), "none": party(maps(Entry{"y", 0}))}, "b a none"},
		{`"type": "distanceSort", "sortDirection": "ascending", "sortAttribute": "maps", "mapKey": "maxValue"`, party(maps(Entry{"x", 10})),
			map[string][][]Value{"a": party(maps(Entry{"x", 50})), "b": party(maps(Entry{"x", 8})), "none": party(maps(Entry{"y", 10}))}, "b a none"},
	} {
		s := exampleSet(t, rule(test.rule)).Rules[0].Form.(*Sort)
		anchor := s.Anchored(test.anchor)
		var names []string
		for name := range test.tickets {
			names = append(names, name)
		}
		slices.Sort(names)
		slices.SortStableFunc(names, func(a, b string) int {
			return s.Compare(s.Key(anchor, test.tickets[a]), s.Key(anchor, test.tickets[b]))
		})
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%s: got %s, want %s", test.rule, got, test.want)
		}
	}
}
