package ruleset

import (
	"testing"
)

const (
	skills = `flatten(teams[*].players.attributes[skill])`
	modes  = `flatten(teams[*].players.attributes[modes])`
	clans  = `flatten(teams[*].players.attributes[clan])`
)

func rule(properties string) string { return `{"name": "R", ` + properties + `}` }

func comparison(m, rest string) string {
	return rule(`"type": "comparison", "measurements": "` + m + `", ` + rest)
}

func distance(m, reference, rest string) string {
	return rule(`"type": "distance", "measurements": ["` + m + `"], "referenceValue": "` + reference + `", ` + rest)
}

func collection(m, rest string) string {
	return rule(`"type": "collection", "measurements": ["` + m + `"], ` + rest)
}

// TestVerdicts judges docs/spec/flexmatch.md#expression-example: red ann (10, K, ctf koth), bob (20, K, koth); blue cyd (30, K, koth race),
// dee (50, L, koth ctf), eve (40, M, koth).
func TestVerdicts(t *testing.T) {
	const teamMeans, mean = "avg(teams[*].players.attributes[skill])", "avg(flatten(teams[*].players.attributes[skill]))"
	for _, test := range []struct {
		rule string
		want Verdict
	}{
		// The worked examples.
		{distance(teamMeans, mean, `"maxDistance": 10`), Fails},
		{distance(teamMeans, mean, `"maxDistance": 15`), Holds},
		{comparison(skills, `"referenceValue": 10, "operation": ">="`), Holds},
		{comparison(skills, `"referenceValue": 11, "operation": ">="`), Fails},
		{comparison(clans, `"operation": "="`), Fails},
		{collection(modes, `"operation": "intersection", "minCount": 1`), Holds},
		{collection(modes, `"operation": "contains", "referenceValue": "race", "maxCount": 1`), Holds},
		{collection("teams[*].players.attributes[modes]", `"operation": "contains", "referenceValue": "ctf", "minCount": 1, "maxCount": 1`), Holds},
		{collection(modes, `"operation": "reference_intersection_count", "referenceValue": "set_intersection(`+modes+`)", "minCount": 1`), Holds},

		// Comparison.
		{comparison(skills, `"referenceValue": "10", "operation": ">="`), Holds}, // a number as text
		{comparison(skills, `"referenceValue": 50, "operation": "<="`), Holds},
		{comparison(skills, `"referenceValue": 50, "operation": "<"`), Fails},
		{comparison(skills, `"referenceValue": 10, "operation": ">"`), Fails},
		{comparison(skills, `"referenceValue": 11, "operation": "!="`), Holds},
		{comparison(skills, `"referenceValue": 10, "operation": "!="`), Fails},
		{comparison(skills, `"operation": "!="`), Holds},
		{comparison("teams[red].players.attributes[clan]", `"operation": "="`), Holds},
		{comparison("teams[*].players.attributes[clan]", `"operation": "="`), Fails},  // K L M in blue
		{comparison("teams[*].players.attributes[clan]", `"operation": "!="`), Fails}, // K K in red
		{comparison(clans, `"referenceValue": "J", "operation": ">"`), Holds},
		{comparison(clans, `"referenceValue": "avg(teams[", "operation": "!="`), Holds}, // not an expression, so a literal
		{comparison("count(teams[red].players)", `"referenceValue": "count(teams[blue].players)", "operation": "="`), Fails},
		{comparison("count(teams[red].players)", `"referenceValue": "count(teams[blue].players)", "operation": "<"`), Holds},
		{comparison("count(teams[*].players)", `"referenceValue": "count(teams[*].players)", "operation": "<="`), Fails}, // 3 against 2
		{comparison(mean, `"operation": "="`), Holds},                                                                    // one value is equal to itself
		{rule(`"type": "comparison", "measurements": ["teams[red].players.attributes[skill]", "teams[blue].players.attributes[skill]"], "referenceValue": 20, "operation": "<="`), Fails},

		// Distance: bounds included, to the ninth digit.
		{distance(mean, "30", `"maxDistance": 0`), Holds},
		{distance(mean, "30.0000000009", `"maxDistance": 0`), Holds},
		{distance(mean, "30.0001", `"maxDistance": 0`), Fails},
		{distance("max("+skills+")", "min("+skills+")", `"maxDistance": 40`), Holds},
		{distance("max("+skills+")", "min("+skills+")", `"maxDistance": 39.999`), Fails},
		{distance("max("+skills+")", "min("+skills+")", `"minDistance": 40, "maxDistance": "500"`), Holds},
		{distance("max("+skills+")", "min("+skills+")", `"minDistance": 40.001`), Fails},
		{distance(skills, "30", `"maxDistance": 20`), Holds},
		{distance(skills, "30", `"minDistance": 1`), Fails}, // cyd

		// Collection.
		{collection(modes, `"operation": "intersection"`), Holds}, // at least one
		{collection(modes, `"operation": "intersection", "minCount": 2`), Fails},
		{collection(modes, `"operation": "intersection", "maxCount": 0`), Fails},
		{collection(modes, `"operation": "contains", "referenceValue": "koth", "minCount": 5`), Holds},
		{collection(modes, `"operation": "contains", "referenceValue": "koth", "maxCount": 4`), Fails},
		{collection(modes, `"operation": "contains", "referenceValue": "dom"`), Fails},
		{collection(modes, `"operation": "contains", "referenceValue": "dom", "maxCount": 0`), Holds},
		{collection(clans, `"operation": "contains", "referenceValue": "K", "minCount": 3, "maxCount": 3`), Holds},
		{collection(clans, `"operation": "intersection"`), Fails},
		{collection("teams[red].players.attributes[clan]", `"operation": "intersection"`), Holds},
		{collection("teams[*].players.attributes[clan]", `"operation": "intersection", "minCount": 1`), Fails},                    // blue has three clans
		{collection("teams[*].players.attributes[clan]", `"operation": "contains", "referenceValue": "K", "maxCount": 1`), Fails}, // two in red
		{collection("teams[*].players.attributes[clan]", `"operation": "contains", "referenceValue": "K", "maxCount": 2`), Holds}, // one in blue
		{collection("teams[*].players.attributes[clan]", `"operation": "contains", "referenceValue": "L", "minCount": 1`), Fails}, // none in red
		{collection("teams[*].players[playerId]", `"operation": "contains", "referenceValue": "ann", "maxCount": 0`), Fails},
		{collection("set_intersection(teams[*].players.attributes[clan])", `"operation": "intersection", "minCount": 1, "maxCount": 1`), Holds}, // one collection: K
		{collection("set_intersection(teams[*].players.attributes[modes])", `"operation": "reference_intersection_count", "referenceValue": "koth"`), Holds},
		{collection("flatten(flatten(teams[*].players.attributes[modes]))", `"operation": "contains", "referenceValue": "koth", "minCount": 5, "maxCount": 5`), Holds},
		{collection("teams[*].players.attributes[modes]", `"operation": "contains", "referenceValue": "race"`), Fails},  // none in red
		{collection(clans, `"operation": "reference_intersection_count", "referenceValue": "K", "minCount": 1`), Fails}, // dee and eve
		{collection(clans, `"operation": "reference_intersection_count", "referenceValue": "K", "maxCount": 1`), Holds},
		{collection("teams[red].players.attributes[clan]", `"operation": "reference_intersection_count", "referenceValue": "K", "minCount": 1, "maxCount": 1`), Holds},
		{collection(modes, `"operation": "reference_intersection_count", "referenceValue": "koth", "minCount": 1`), Holds},
		{collection(modes, `"operation": "reference_intersection_count", "referenceValue": "ctf", "minCount": 1`), Fails},
		{collection(modes, `"operation": "reference_intersection_count", "referenceValue": "flatten(teams[*].players[playerId])", "maxCount": 0`), Holds},

		// batchDistance.
		{rule(`"type": "batchDistance", "batchAttribute": "skill", "maxDistance": 40`), Holds},
		{rule(`"type": "batchDistance", "batchAttribute": "skill", "maxDistance": 39`), Fails},
		{rule(`"type": "batchDistance", "batchAttribute": "clan"`), Fails},

		// Sort rules are no conditions.
		{rule(`"type": "absoluteSort", "sortDirection": "ascending", "sortAttribute": "skill"`), Holds},
		{rule(`"type": "distanceSort", "sortDirection": "ascending", "sortAttribute": "maps", "mapKey": "maxValue"`), Holds},
	} {
		set := exampleSet(t, test.rule)
		if got := set.Level(0).Evaluate(exampleCandidate(t, set))[0]; got != test.want {
			t.Errorf("%s: got %d, want %d", test.rule, got, test.want)
		}
	}
}

func TestVerdictsOfEmptyTeams(t *testing.T) {
	for _, test := range []struct {
		rule string
		want Verdict
	}{
		{distance("avg(teams[*].players.attributes[skill])", "avg("+skills+")", `"maxDistance": 100`), Undefined},
		{comparison("max(teams[red].players.attributes[skill])", `"referenceValue": 1, "operation": ">"`), Undefined},
		{comparison("teams[*].players.attributes[skill]", `"referenceValue": 1, "operation": ">"`), Holds}, // no player violates it
		{comparison("sum(teams[red].players.attributes[skill])", `"referenceValue": 0, "operation": "="`), Holds},
		{comparison("count(teams[red].players)", `"referenceValue": 0, "operation": "="`), Holds},
		{collection("teams[*].players.attributes[modes]", `"operation": "intersection"`), Undefined},
		{collection("teams[red].players.attributes[modes]", `"operation": "contains", "referenceValue": "ctf", "maxCount": 0`), Holds},
		{collection(modes, `"operation": "reference_intersection_count", "referenceValue": "set_intersection(teams[red].players.attributes[modes])", "maxCount": 9`), Undefined},
	} {
		set := exampleSet(t, test.rule)
		c := exampleCandidate(t, set)
		c.Teams[0] = nil
		if got := set.Level(0).Evaluate(c)[0]; got != test.want {
			t.Errorf("%s: got %d, want %d", test.rule, got, test.want)
		}
		if set.Level(0).Accepts(c) != (test.want == Holds) {
			t.Errorf("%s: Accepts contradicts the verdict %d", test.rule, test.want)
		}
	}
}

// TestCompound tests every operation with all combinations of verdicts: T holds, F fails, U is undefined.
func TestCompound(t *testing.T) {
	const parts = `
		{"name": "T", "type": "comparison", "measurements": "count(teams[*])", "referenceValue": 2, "operation": "="},
		{"name": "F", "type": "comparison", "measurements": "count(teams[*])", "referenceValue": 3, "operation": "="},
		{"name": "U", "type": "comparison", "measurements": "max(teams[red].players.attributes[skill])", "referenceValue": 3, "operation": ">"},
		{"name": "nand", "type": "compound", "statement": "not(and(T, U))"}`
	for statement, want := range map[string]Verdict{
		"T": Holds, "F": Fails, "U": Undefined, "not(T)": Fails, "not( F )": Holds, "not(U)": Undefined,
		"and(T,T)": Holds, "and(T,F)": Fails, "and(U,T)": Undefined, "and(U,F)": Fails, "and(T,T,F)": Fails,
		"or(F,F)": Fails, "or(U,T)": Holds, "or(U,F)": Undefined, "or(F,F,T)": Holds,
		"xor(T,F)": Holds, "xor(T,T)": Fails, "xor(F,F)": Fails, "xor(U,T)": Undefined, "xor(U,T,T)": Fails, "xor(T,T,T)": Fails,
		"or(and(T,F),not(xor(T,T)))": Holds, "nand": Undefined, "or(nand,T)": Holds,
	} {
		set := exampleSet(t, parts, `{"name": "C", "type": "compound", "statement": "`+statement+`"}`)
		c := exampleCandidate(t, set)
		c.Teams[0] = nil
		if got := set.Level(0).Evaluate(c)[4]; got != want {
			t.Errorf("%s: got %d, want %d", statement, got, want)
		}
	}
}

func TestReplacedRulesAreNotRequired(t *testing.T) {
	set := exampleSet(t,
		`{"name": "F", "type": "comparison", "measurements": "count(teams[*])", "referenceValue": 3, "operation": "="}`,
		`{"name": "C", "type": "compound", "statement": "not(F)"}`)
	if c := exampleCandidate(t, set); !set.Level(0).Accepts(c) {
		t.Error("a part of a compound rule is required by itself")
	}
}

func TestAcceptsTeamSizesAndMissingValues(t *testing.T) {
	set := exampleSet(t)
	c := exampleCandidate(t, set)
	if !set.Level(0).Accepts(c) {
		t.Fatal("a legal candidate is refused")
	}
	values, err := set.Player(nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Teams[0] = append(c.Teams[0], Player{ID: "fay", Ticket: 9, Values: values})
	if set.Level(0).Accepts(c) {
		t.Error("a player without a skill is accepted")
	}
	c = exampleCandidate(t, set)
	for i := range 3 {
		c.Teams[1] = append(c.Teams[1], examplePlayer(t, set, "x", 10+i, 1, "K"))
	}
	if set.Level(0).Accepts(c) {
		t.Error("six players are accepted in a team of five")
	}
}

func TestPartiesInBatchDistance(t *testing.T) {
	for _, test := range []struct {
		aggregation string
		max         float64
		want        Verdict
	}{ // one party of 0 and 100, one player of 70
		{"avg", 20, Holds}, {"avg", 19, Fails}, {"min", 70, Holds}, {"min", 69, Fails}, {"max", 30, Holds}, {"max", 29, Fails},
	} {
		set := exampleSet(t, rule(`"type": "batchDistance", "batchAttribute": "skill", "maxDistance": 1000, "partyAggregation": "`+test.aggregation+`"`))
		set.Rules[0].Form.(*BatchDistance).MaxDistance = test.max
		c := &Candidate{Teams: [][]Player{
			{examplePlayer(t, set, "a", 1, 0, "K"), examplePlayer(t, set, "b", 1, 100, "K")},
			{examplePlayer(t, set, "c", 2, 70, "K")},
		}}
		if got := set.Level(0).Evaluate(c)[0]; got != test.want {
			t.Errorf("%s within %v: got %d, want %d", test.aggregation, test.max, got, test.want)
		}
	}
}

func TestLatency(t *testing.T) {
	player := func(id string, ticket int, near, far int32) Player {
		p := Player{ID: id, Ticket: ticket}
		for region, ms := range map[string]int32{"near": near, "far": far} {
			if ms > 0 {
				p.Latencies = append(p.Latencies, RegionLatency{region, ms})
			}
		}
		return p
	}
	for _, test := range []struct {
		name, rule string
		players    []Player
		want       Verdict
	}{
		{"equal to the maximum", `"maxLatency": 50`, []Player{player("a", 1, 50, 0), player("b", 2, 20, 90)}, Holds},
		{"above it", `"maxLatency": 50`, []Player{player("a", 1, 51, 0), player("b", 2, 20, 90)}, Fails},
		{"no region in common", `"maxLatency": 50`, []Player{player("a", 1, 20, 0), player("b", 2, 0, 20)}, Fails},
		{"nothing reported", `"maxLatency": 50`, []Player{player("a", 1, 20, 20), player("b", 2, 0, 0)}, Fails},
		{"another region suits", `"maxLatency": 50`, []Player{player("a", 1, 200, 40), player("b", 2, 10, 50)}, Holds},
		{"near the average 30", `"maxDistance": 10`, []Player{player("a", 1, 20, 0), player("b", 2, 40, 0)}, Holds},
		{"not near it", `"maxDistance": 9`, []Player{player("a", 1, 20, 0), player("b", 2, 40, 0)}, Fails},
		{"near the minimum", `"maxDistance": 20, "distanceReference": "min"`, []Player{player("a", 1, 20, 0), player("b", 2, 40, 0)}, Holds},
		{"not near it", `"maxDistance": 19, "distanceReference": "min"`, []Player{player("a", 1, 20, 0), player("b", 2, 40, 0)}, Fails},
		{"a number as reference", `"maxDistance": 10, "distanceReference": 5`, []Player{player("a", 1, 20, 0), player("b", 2, 40, 0)}, Holds},
		{"a party's average", `"maxDistance": 0`, []Player{player("a", 1, 20, 0), player("b", 1, 40, 0)}, Holds},
		{"a party's minimum", `"maxDistance": 9, "partyAggregation": "min"`, []Player{player("a", 1, 20, 0), player("b", 1, 40, 0)}, Fails},
		{"both in one region", `"maxLatency": 50, "maxDistance": 5`, []Player{player("a", 1, 20, 45), player("b", 2, 50, 40)}, Holds},
		{"each in another", `"maxLatency": 50, "maxDistance": 5`, []Player{player("a", 1, 20, 100), player("b", 2, 50, 100)}, Fails},
	} {
		set := exampleSet(t, rule(`"type": "latency", `+test.rule))
		c := &Candidate{Teams: [][]Player{test.players[:1], test.players[1:]}}
		if got := set.Level(0).Evaluate(c)[0]; got != test.want {
			t.Errorf("%s: %s: got %d, want %d", test.name, test.rule, got, test.want)
		}
	}
}

func TestComparisonsAreExactForSentNumbers(t *testing.T) {
	for _, test := range []struct {
		op             Operation
		a, b           float64
		exact, roughly bool
	}{
		{Equal, 1234567890, 1234567891, false, true}, // identifiers, as some games send them
		{NotEqual, 1234567890, 1234567891, true, false},
		{Less, 1234567890, 1234567891, true, false},
		{LessOrEqual, 1234567891, 1234567890, false, true},
		{Equal, 1.0 / 3, 0.3333333333333, false, true},
		{Equal, 1e-10, 0, false, true},
		{Equal, 1e-9, 0, false, false},
		{Greater, 2, 1, true, true},
		{GreaterOrEqual, 1, 1 + 1e-10, false, true},
		{Equal, 1e308, -1e308, false, false},
	} {
		if exact, roughly := test.op.Holds(test.a, test.b, false), test.op.Holds(test.a, test.b, true); exact != test.exact || roughly != test.roughly {
			t.Errorf("%v %s %v: got %t, computed %t; want %t, computed %t", test.a, test.op, test.b, exact, roughly, test.exact, test.roughly)
		}
	}
}
