package ruleset

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestLevels(t *testing.T) {
	set := mustParse(t, `{"ruleLanguageVersion": "1.0", "playerAttributes": [{"name": "skill", "type": "number"}],
		"teams": [{"name": "squad", "minPlayers": 3, "maxPlayers": 3, "quantity": 2}, {"name": "boss", "minPlayers": 1, "maxPlayers": 1}],
		"rules": [`+distance("max("+skills+")", "min("+skills+")", `"maxDistance": 10`)+`, {"name": "S", "type": "comparison", "measurements": "count(teams[squad].players)", "operation": "="}],
		"expansions": [
			{"target": "rules[R].maxDistance", "steps": [{"waitTimeSeconds": 10, "value": 20}, {"waitTimeSeconds": 30, "value": "40"}]},
			{"target": " teams [ squad ] . minPlayers ", "steps": [{"waitTimeSeconds": 20, "value": 2}, {"waitTimeSeconds": 30, "value": 1}]},
			{"target": "teams[boss].maxPlayers", "steps": [{"waitTimeSeconds": 30, "value": 2}]}]}`)
	if want := []int32{0, 10, 20, 30}; !slices.Equal(set.Waits(), want) {
		t.Fatalf("got the waits %v, want %v", set.Waits(), want)
	}
	if set.PlayersMax != 8 || set.PartyMax != 3 || set.Large || len(set.Teams) != 3 || set.Teams[1] != (Team{"squad_2", "squad"}) {
		t.Errorf("got %d players, parties of %d, large %t, teams %v", set.PlayersMax, set.PartyMax, set.Large, set.Teams)
	}
	for i, want := range []struct {
		max            float64
		squad          Size
		minimum, slots int32
	}{{10, Size{3, 3}, 7, 7}, {20, Size{3, 3}, 7, 7}, {20, Size{2, 3}, 5, 7}, {40, Size{1, 3}, 3, 8}} {
		l := set.Level(i)
		if got := l.Rules[0].Form.(*Distance).Bounds.Max; got != want.max || l.Teams[1] != want.squad || l.Minimum != want.minimum || l.Slots != want.slots {
			t.Errorf("level %d: got %v, %v, %d to %d players; want %v", i, got, l.Teams[1], l.Minimum, l.Slots, want)
		}
		if l.Rules[1] != set.Rules[1] {
			t.Errorf("level %d: want a rule that no step changes to be shared", i)
		}
	}
	if got, want := fmt.Sprint(set.Level(3).Changes), `[{rules[R].maxDistance 20 "40"} {teams[squad].minPlayers 2 1} {teams[boss].maxPlayers 1 2}]`; got != want {
		t.Errorf("got the changes %s, want %s", got, want)
	}
	for age, want := range map[int64]int{0: 0, 9: 0, 10: 1, 29: 2, 30: 3, math.MaxInt64: 3} {
		if got := set.LevelAt(age); got != want {
			t.Errorf("age %d: got level %d, want %d", age, got, want)
		}
	}
}

func TestSizeClassCountsTheLargestStep(t *testing.T) {
	body := `{"ruleLanguageVersion": "1.0", "playerAttributes": [{"name": "skill", "type": "number"}],
		"algorithm": {"strategy": "balanced", "balancedAttribute": "skill"},
		"teams": [{"name": "a", "minPlayers": 10, "maxPlayers": %d, "quantity": 2}],
		"expansions": [{"target": "teams[a].maxPlayers", "steps": [{"waitTimeSeconds": 5, "value": %d}, {"waitTimeSeconds": 6, "value": 10}]}]}`
	for _, test := range []struct {
		first, step int
		large       bool
	}{{20, 20, false}, {20, 21, true}, {100, 100, true}} {
		if set := mustParse(t, fmt.Sprintf(body, test.first, test.step)); set.Large != test.large {
			t.Errorf("%d growing to %d: got large %t, want %t", test.first, test.step, set.Large, test.large)
		}
	}
}

func TestAlgorithm(t *testing.T) {
	head := `{"ruleLanguageVersion": "1.0", "playerAttributes": [{"name": "skill", "type": "number"}, {"name": "clan", "type": "string"}],
		"teams": [{"name": "a", "minPlayers": 1, "maxPlayers": 2}]`
	for _, test := range []struct {
		text string
		want Algorithm
	}{
		{``, Algorithm{Batching: Random, BalancedColumn: -1}},
		{`"batchingPreference": "sorted", "sortByAttributes": ["clan", "skill"], "backfillPriority": "low", "expansionAgeSelection": "oldest"`,
			Algorithm{Batching: Sorted, BalancedColumn: -1, BackfillPriority: Low, OldestAge: true}},
		{`"strategy": "balanced", "balancedAttribute": "skill", "backfillPriority": "high"`,
			Algorithm{Balanced: true, Batching: LargestPopulation, BackfillPriority: High}},
		{`"strategy": "balanced", "balancedAttribute": "skill", "batchingPreference": "fastestRegion"`,
			Algorithm{Balanced: true, Batching: FastestRegion}},
	} {
		set := mustParse(t, head+`, "algorithm": {`+test.text+`}}`)
		if got := fmt.Sprint(set.Algorithm); got != fmt.Sprint(test.want) {
			t.Errorf("%s: got %s, want %v", test.text, got, test.want)
		}
	}
}

func TestPlayer(t *testing.T) {
	set := mustParse(t, `{"ruleLanguageVersion": "1.0", "teams": [{"name": "a", "minPlayers": 1, "maxPlayers": 2}], "playerAttributes": [
		{"name": "n", "type": "number", "default": "12.5"}, {"name": "s", "type": "string", "default": ""},
		{"name": "l", "type": "string_list", "default": []}, {"name": "m", "type": "string_number_map", "default": {"b": "2", "a": 1}}]}`)
	values, err := set.Player([]NamedValue{{"other", Value{Kind: String}}})
	if err != nil || values[0].Number != 12.5 || values[1].Kind != None || values[2].Kind != List || fmt.Sprint(values[3].Map) != "[{a 1} {b 2}]" {
		t.Fatalf("got %v, %v", values, err)
	}
	if name, missing := set.Missing(values); !missing || name != "s" {
		t.Errorf("got %q missing, want s: an empty default is none", name)
	}
	values, err = set.Player([]NamedValue{
		{"l", Value{Kind: List, List: []string{"x", "y", "x"}}}, {"s", Value{Kind: String, Text: "z"}},
		{"m", Value{Kind: Map, Map: []Entry{{"q", 1}, {"p", 2}}}},
	})
	if err != nil || strings.Join(values[2].List, "") != "xy" || fmt.Sprint(values[3].Map) != "[{p 2} {q 1}]" {
		t.Errorf("got %v, %v, want the second x dropped and the map by key", values, err)
	}
	if _, missing := set.Missing(values); missing {
		t.Error("a value is missing")
	}
	for want, sent := range map[string]NamedValue{
		`attribute "n": got a string, want number`:                              {"n", Value{Kind: String, Text: "5"}},
		`attribute "n": got a number, want a finite number`:                     {"n", Value{Kind: Number, Number: math.NaN()}},
		`attribute "m": got a string_number_map, want finite numbers`:           {"m", Value{Kind: Map, Map: []Entry{{"a", math.Inf(-1)}}}},
		`attribute "s": got a string, want 1 to 100 characters`:                 {"s", Value{Kind: String, Text: strings.Repeat("ü", 101)}},
		`attribute "l": got a string_list, want strings of 1 to 100 characters`: {"l", Value{Kind: List, List: []string{""}}},
		`attribute "l": got a string_list, want at most 100 strings`:            {"l", Value{Kind: List, List: make([]string, 101)}},
		`attribute "m": got a string_number_map, want at most 10 pairs`:         {"m", Value{Kind: Map, Map: make([]Entry, 11)}},
		`attribute "n": got a nothing, want number`:                             {"n", Value{}},
	} {
		if _, err := set.Player([]NamedValue{sent}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := set.Player([]NamedValue{{"s", Value{Kind: String, Text: strings.Repeat("ü", 100)}}, {"n", Value{Kind: Number, Number: 1e308}}}); err != nil {
		t.Errorf("got %v, want 100 characters and 1e308 accepted", err)
	}
}

func TestShapes(t *testing.T) {
	none := -1
	for _, test := range []struct {
		rule    string
		pattern Pattern
		column  int
		all     bool
	}{
		{distance("max("+skills+")", "min("+skills+")", `"maxDistance": 10`), Spread, 0, true},
		{distance("min("+skills+")", "max("+skills+")", `"maxDistance": 10`), Spread, 0, true},
		{distance("max(teams[red].players.attributes[skill])", "min(teams[red].players.attributes[skill])", `"maxDistance": 10`), Spread, 0, false},
		{distance("max("+skills+")", "min(teams[red].players.attributes[skill])", `"maxDistance": 10`), General, none, false},
		{distance("max("+skills+")", "min("+skills+")", `"minDistance": 1, "maxDistance": 10`), General, none, false},
		{distance("max(max(teams[*].players.attributes[skill]))", "min("+skills+")", `"maxDistance": 10`), General, none, false},
		{distance("avg(teams[*].players.attributes[skill])", "avg("+skills+")", `"maxDistance": 10`), TeamMeans, 0, true},
		{distance(skills, "avg("+skills+")", `"maxDistance": 10`), General, none, false},
		{comparison(skills, `"referenceValue": 10, "operation": ">="`), PlayerLiteral, 0, true},
		{comparison("teams[*].players.attributes[skill]", `"referenceValue": 10, "operation": ">="`), PlayerLiteral, 0, true},
		{comparison("teams[red].players.attributes[clan]", `"referenceValue": "K", "operation": "="`), PlayerLiteral, 2, false},
		{comparison("teams[red].players.attributes[modes]", `"referenceValue": "K", "operation": "="`), General, none, false},
		{comparison(clans, `"operation": "="`), PlayersEqual, 2, true},
		{comparison("teams[red].players.attributes[clan]", `"operation": "!="`), PlayersDiffer, 2, false},
		{comparison("teams[*].players.attributes[clan]", `"operation": "="`), General, none, false},
		{comparison("count(teams[red].players)", `"referenceValue": "count(teams[blue].players)", "operation": "="`), TeamSizes, 0, false},
		{collection(modes, `"operation": "intersection", "minCount": 1`), CommonValues, 1, true},
		{collection(clans, `"operation": "intersection"`), CommonValues, 2, true},
		{collection(modes, `"operation": "intersection", "maxCount": 1`), General, none, false},
		{collection("teams[*].players.attributes[modes]", `"operation": "intersection"`), General, none, false},
		{collection("flatten("+modes+")", `"operation": "intersection"`), General, none, false},
		{collection(modes, `"operation": "contains", "referenceValue": "x"`), ContainsCount, 1, true},
		{collection(modes, `"operation": "reference_intersection_count", "referenceValue": "set_intersection(`+modes+`)", "minCount": 1`), AllAccept, 1, true},
		{collection(modes, `"operation": "reference_intersection_count", "referenceValue": "flatten(teams[*].players[playerId])", "maxCount": 0`), NoneBlocks, 1, true},
		{collection(modes, `"operation": "reference_intersection_count", "referenceValue": "flatten(teams[*].players[playerId])", "minCount": 1`), General, none, false},
	} {
		s := exampleSet(t, test.rule).Rules[0].Shapes[0]
		if test.pattern == General {
			test.column, s.Column = 0, 0
		}
		if s.Pattern != test.pattern || s.Column != test.column || s.All != test.all {
			t.Errorf("%s: got %+v, want pattern %d, column %d, all %t", test.rule, s, test.pattern, test.column, test.all)
		}
	}
}
