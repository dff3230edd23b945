package ruleset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestValidation covers every check of the language: a mistake in a rule set, and all problems that it causes, in order.
func TestValidation(t *testing.T) {
	const (
		version = `"ruleLanguageVersion": "1.0", `
		duo     = `"teams": [{"name": "a", "minPlayers": 1, "maxPlayers": 2}, {"name": "b", "minPlayers": 1, "maxPlayers": 2}]`
		attrs   = `"playerAttributes": [{"name": "skill", "type": "number"}, {"name": "clan", "type": "string"}, {"name": "modes", "type": "string_list"}, {"name": "maps", "type": "string_number_map"}], `
		crowd   = `"teams": [{"name": "a", "minPlayers": 1, "maxPlayers": 100}]`
	)
	rules := func(r ...string) string {
		return "{" + version + attrs + duo + `, "rules": [` + strings.Join(r, ", ") + "]}"
	}
	teams := func(list string) string { return "{" + version + `"teams": [` + list + "]}" }
	algorithm := func(a string) string { return "{" + version + attrs + duo + `, "algorithm": {` + a + "}}" }
	attribute := func(a string) string { return "{" + version + `"playerAttributes": [` + a + "], " + duo + "}" }
	near := `{"name": "Near", "type": "distance", "measurements": "max(flatten(teams[*].players.attributes[skill]))", "referenceValue": 1, "maxDistance": 5}`
	expansions := func(e string) string {
		return "{" + version + attrs + duo + `, "rules": [` + near + `, {"name": "Not", "type": "compound", "statement": "not(Near)"}], "expansions": [` + e + "]}"
	}

	for _, test := range []struct {
		name, body string
		want       []string
	}{
		// The body.
		{"nothing", "", []string{"line 1, character 1: the text ends, want a value"}},
		{"no object", "[]", []string{"got a list, want an object"}},
		{"a trailing comma", `{"a": [1,]}`, []string{"line 1, character 10: got ']', want a value"}},
		{"text behind it", "{} {}", []string{"line 1, character 4: got '{', want the end"}},
		{"the line counts", "{\n\"a\": nul}", []string{"line 2, character 6: got 'n', want a value"}},
		{"a repeated key", `{"a": {"b": 1, "b": 1}}`, []string{`line 1, character 16: the key "b" occurs twice`}},
		{"too long", strings.Repeat(" ", 65_536), []string{"the body has 65536 characters, want at most 65535"}},
		{"too deep", strings.Repeat("[", 70), []string{"lists and objects nest deeper than 64"}},
		{"not UTF-8", "{\"a\": \"\xff\"}", []string{"the body is not UTF-8"}},
		{"an open string", `{"a`, []string{"the string has no end"}},
		{"a wrong escape", `{"a\x": 1}`, []string{`got the escape \x`}},
		{"a leading zero", `{"a": 01}`, []string{"got '1', want ',' or '}'"}},

		// The required fields of every rule set.
		{"empty", "{}", []string{"ruleLanguageVersion: it is missing", "teams: it is missing or empty"}},
		{"another version", "{\"ruleLanguageVersion\": 1.0, " + duo + "}", []string{`ruleLanguageVersion: got 1.0, want "1.0"`}},
		{"a name that is none", "{\"name\": 5, " + version + duo + "}", []string{"name: got 5, want a string"}},
		{"lists that are none", "{" + version + `"playerAttributes": 1, "teams": {}, "rules": "x", "expansions": null}`, []string{
			"playerAttributes: got 1, want a list", "teams: got an object, want a list", `rules: got "x", want a list`, "expansions: got null, want a list",
		}},

		// Attributes.
		{"no type", attribute(`{"name": "x"}`), []string{"playerAttributes[x].type: it is missing, want string, number, string_list or string_number_map"}},
		{"an unknown type", attribute(`{"name": "x", "type": "int"}`), []string{`playerAttributes[x].type: got "int", want string`}},
		{"no name", attribute(`{"type": "string"}`), []string{"playerAttributes[0].name: it is missing"}},
		{"twice", attribute(`{"name": "x", "type": "string"}, {"name": "x", "type": "number"}`), []string{`playerAttributes[x].name: two attributes are called "x"`}},
		{"no object", attribute(`7`), []string{"playerAttributes[0]: got 7, want an object"}},
		{"default of a string", attribute(`{"name": "x", "type": "string", "default": 5}`), []string{"playerAttributes[x].default: got 5, want a value of type string: a string"}},
		{"default of a number", attribute(`{"name": "x", "type": "number", "default": "much"}`), []string{`playerAttributes[x].default: got "much", want a value of type number`}},
		{"default too large", attribute(`{"name": "x", "type": "number", "default": 1e999}`), []string{`playerAttributes[x].default: got 1e999, want a value of type number`}},
		{"default of a list", attribute(`{"name": "x", "type": "string_list", "default": ["a", 1]}`), []string{"playerAttributes[x].default: got a list, want a value of type string_list: a list of strings, not of 1"}},
		{"default of a map", attribute(`{"name": "x", "type": "string_number_map", "default": {"a": []}}`), []string{"an object of numbers, not of a list"}},
		{"default too long", attribute(`{"name": "x", "type": "string", "default": "` + strings.Repeat("x", 101) + `"}`), []string{"1 to 100 characters"}},
		{"default null", attribute(`{"name": "x", "type": "string", "default": null}`), []string{"playerAttributes[x].default: got null"}},

		// Teams.
		{"properties missing", teams(`{}`), []string{"teams[0].name: it is missing", "teams[0].minPlayers: it is missing", "teams[0].maxPlayers: it is missing"}},
		{"min above max", teams(`{"name": "a", "minPlayers": 3, "maxPlayers": 2}`), []string{"teams[a].minPlayers: got 3, want at most the team's maxPlayers 2"}},
		{"negative", teams(`{"name": "a", "minPlayers": -1, "maxPlayers": 0}`), []string{"teams[a].minPlayers: got -1, want a whole number of at least 0", "teams[a].maxPlayers: got 0, want a whole number of at least 1"}},
		{"fractions", teams(`{"name": "a", "minPlayers": 0.5, "maxPlayers": 2, "quantity": 0}`), []string{"teams[a].minPlayers: got 0.5", "teams[a].quantity: got 0, want a whole number of at least 1"}},
		{"twice", teams(`{"name": "a", "minPlayers": 1, "maxPlayers": 2}, {"name": "a", "minPlayers": 1, "maxPlayers": 2}`), []string{`teams[a].name: two teams are called "a"`}},
		{"a generated name", teams(`{"name": "a", "minPlayers": 1, "maxPlayers": 2, "quantity": 2}, {"name": "a_2", "minPlayers": 1, "maxPlayers": 2}`), []string{`teams[a].quantity: it makes a team "a_2", and another team is called so`}},
		{"too many players", teams(`{"name": "a", "minPlayers": 1, "maxPlayers": 101, "quantity": 2}`), []string{"teams: the teams' maxPlayers, at their largest, sum to 202, want at most 200"}},
		{"far too many", teams(`{"name": "a", "minPlayers": 1, "maxPlayers": 2000000000, "quantity": 2000000000}`), []string{"want at most 200"}},

		// The algorithm.
		{"unknown words", algorithm(`"strategy": "greedy", "backfillPriority": 1, "expansionAgeSelection": "middle"`), []string{
			`algorithm.strategy: got "greedy", want exhaustiveSearch or balanced`, "algorithm.backfillPriority: got 1, want normal, high or low",
			`algorithm.expansionAgeSelection: got "middle", want newest or oldest`,
		}},
		{"an unknown preference", algorithm(`"batchingPreference": "best"`), []string{`algorithm.batchingPreference: got "best", want random, sorted, largestPopulation or fastestRegion`}},
		{"no object", "{" + version + duo + `, "algorithm": "balanced"}`, []string{`algorithm: got "balanced", want an object`}},
		{"large and exhaustive", "{" + version + crowd + "}", []string{"algorithm.strategy: got exhaustiveSearch (which it is by default), want balanced: the teams take up to 100 players"}},
		{"balanced without", algorithm(`"strategy": "balanced"`), []string{"algorithm.balancedAttribute: it is missing"}},
		{"balanced by what is not declared", algorithm(`"strategy": "balanced", "balancedAttribute": "x"`), []string{`algorithm.balancedAttribute: the attribute "x" is not declared`}},
		{"balanced by a string", algorithm(`"strategy": "balanced", "balancedAttribute": "clan"`), []string{`algorithm.balancedAttribute: the attribute "clan" is a string, want a number`}},
		{"sorted and balanced", algorithm(`"strategy": "balanced", "balancedAttribute": "skill", "batchingPreference": "sorted", "sortByAttributes": ["skill"]`), []string{`algorithm.batchingPreference: got "sorted", want largestPopulation or fastestRegion`}},
		{"fastest and exhaustive", algorithm(`"batchingPreference": "fastestRegion"`), []string{`algorithm.batchingPreference: got "fastestRegion", want random or sorted`}},
		{"sorted by nothing", algorithm(`"batchingPreference": "sorted", "sortByAttributes": []`), []string{"algorithm.sortByAttributes: want a list of at least one attribute"}},
		{"sorted by what is not declared", algorithm(`"batchingPreference": "sorted", "sortByAttributes": ["skill", "x", 5]`), []string{`algorithm.sortByAttributes: got "x", want declared attributes`, "algorithm.sortByAttributes: got 5"}},

		// Rules.
		{"no type", rules(`{"name": "R"}`), []string{"rules[R].type: it is missing, want comparison, distance"}},
		{"an unknown type", rules(`{"name": "R", "type": "best"}`), []string{`rules[R].type: got "best", want comparison`}},
		{"no name", rules(`{"type": "latency", "maxLatency": 5}`), []string{"rules[0].name: it is missing"}},
		{"twice", rules(near, near), []string{`rules[Near].name: two rules are called "Near"`}},
		{"too large for it", "{" + version + attrs + crowd + `, "algorithm": {"strategy": "balanced", "balancedAttribute": "skill"}, "rules": [` + near + `, {"name": "L", "type": "latency", "maxDistance": 5}]}`, []string{
			"rules[L].maxLatency: it is missing", "rules[Near].type: rule type distance is not available for more than 40 players, and the teams take up to 100",
		}},

		{"comparison of nothing", rules(rule(`"type": "comparison", "operation": "="`)), []string{"rules[R].measurements: it is missing or empty"}},
		{"comparison by nothing", rules(comparison(skills, `"referenceValue": 5`)), []string{"rules[R].operation: it is missing, want <, <=, =, !=, > or >="}},
		{"comparison by a word", rules(comparison(skills, `"referenceValue": 5, "operation": "=="`)), []string{`rules[R].operation: got "=="`}},
		{"comparison with nothing", rules(comparison(skills, `"operation": "<"`)), []string{"rules[R].referenceValue: it is missing, and the operation < needs it"}},
		{"comparison of maps", rules(comparison("teams[*].players.attributes[maps]", `"operation": "="`)), []string{`rules[R].measurements: "teams[*].players.attributes[maps]" is a List<List<string_number_map>>, want numbers or strings`}},
		{"comparison of players", rules(comparison("teams[*].players", `"operation": "="`)), []string{"is a List<List<Player>>, want numbers or strings"}},
		{"comparison of a number with text", rules(comparison(skills, `"referenceValue": "good", "operation": "="`)), []string{`rules[R].referenceValue: got "good", want a number or an expression of numbers; it is not an expression: at character 1`}},
		{"comparison of text with a number", rules(comparison(clans, `"referenceValue": 5, "operation": "="`)), []string{"rules[R].referenceValue: got 5, want a string or an expression of strings"}},
		{"comparison of a number with strings", rules(comparison(skills, `"referenceValue": "`+clans+`", "operation": "="`)), []string{"is a List<string>, want a number or an expression of numbers"}},
		{"comparison of both", rules(rule(`"type": "comparison", "measurements": ["` + skills + `", "` + clans + `"], "referenceValue": 5, "operation": "="`)), []string{"rules[R].measurements: one is a List<number>, another a List<string>"}},
		{"comparison with a list", rules(comparison(skills, `"referenceValue": [5], "operation": "="`)), []string{"rules[R].referenceValue: got a list, want a number"}},
		{"aggregation", rules(comparison(skills, `"operation": "=", "partyAggregation": "sum"`)), []string{`rules[R].partyAggregation: got "sum", want avg, min or max`}},

		{"an expression that is none", rules(comparison("avg(teams[*]", `"operation": "="`)), []string{`rules[R].measurements: "avg(teams[*]" is not an expression: at character 13 want ')', got the end`}},
		{"an unknown attribute", rules(distance(skills, "1", `"maxDistance": 5`), distance("teams[*].players.attributes[x]", "1", `"maxDistance": 5`)), []string{`rules[R].name: two rules`, `rules[R].measurements[0]: "teams[*].players.attributes[x]": the attribute "x" is not declared`}},
		{"an unknown team", rules(comparison("count(teams[c].players)", `"operation": "=", "referenceValue": "count(teams[d].players)"`)), []string{`the team "c" is unknown`, `rules[R].referenceValue: "count(teams[d].players)": the team "d" is unknown`}},
		{"a measurement that is no text", rules(rule(`"type": "comparison", "measurements": [5], "operation": "="`)), []string{"rules[R].measurements[0]: got 5, want an expression"}},

		{"distance without bounds", rules(distance(skills, "5", `"partyAggregation": "min"`)), []string{"rules[R].maxDistance: it is missing, want minDistance or maxDistance or both"}},
		{"distance to nothing", rules(rule(`"type": "distance", "measurements": "` + skills + `", "maxDistance": 5`)), []string{"rules[R].referenceValue: it is missing"}},
		{"distance of strings", rules(distance(clans, "5", `"maxDistance": 5`)), []string{"is a List<string>, want numbers"}},
		{"distance below 0", rules(distance(skills, "5", `"minDistance": -1, "maxDistance": "far"`)), []string{"rules[R].minDistance: got -1, want a number of at least 0", `rules[R].maxDistance: got "far"`}},

		{"collection of numbers", rules(collection(skills, `"operation": "intersection"`)), []string{"is a List<number>, want lists of strings"}},
		{"collection without operation", rules(collection(modes, `"minCount": 1`)), []string{"rules[R].operation: it is missing, want contains, intersection or reference_intersection_count"}},
		{"contains nothing", rules(collection(modes, `"operation": "contains"`)), []string{"rules[R].referenceValue: it is missing"}},
		{"contains a number", rules(collection(modes, `"operation": "contains", "referenceValue": 5`)), []string{"rules[R].referenceValue: got 5, want a string or an expression of strings"}},
		{"counts", rules(collection(modes, `"operation": "intersection", "minCount": 0.5, "maxCount": -1`)), []string{"rules[R].minCount: got 0.5", "rules[R].maxCount: got -1"}},
		{"aggregation of collections", rules(collection(modes, `"operation": "intersection", "partyAggregation": "avg"`)), []string{`rules[R].partyAggregation: got "avg", want union or intersection`}},

		{"latency without bounds", rules(rule(`"type": "latency"`)), []string{"want maxLatency or maxDistance or both"}},
		{"latency reference", rules(rule(`"type": "latency", "maxDistance": 5, "distanceReference": "max"`)), []string{`rules[R].distanceReference: got "max", want avg or min`}},

		{"batchDistance without attribute", rules(rule(`"type": "batchDistance", "maxDistance": 5`)), []string{"rules[R].batchAttribute: it is missing"}},
		{"batchDistance of a list", rules(rule(`"type": "batchDistance", "batchAttribute": "modes"`)), []string{`rules[R].batchAttribute: the attribute "modes" is a string_list, want a number or a string`}},
		{"batchDistance of what is not declared", rules(rule(`"type": "batchDistance", "batchAttribute": "x"`)), []string{`rules[R].batchAttribute: the attribute "x" is not declared`}},
		{"batchDistance without bound", rules(rule(`"type": "batchDistance", "batchAttribute": "skill"`)), []string{"rules[R].maxDistance: it is missing"}},

		{"a sort of nothing", rules(rule(`"type": "absoluteSort"`)), []string{"rules[R].sortDirection: it is missing, want ascending or descending", "rules[R].sortAttribute: it is missing"}},
		{"a sort of lists", rules(rule(`"type": "absoluteSort", "sortDirection": "up", "sortAttribute": "modes"`)), []string{`rules[R].sortDirection: got "up"`, `rules[R].sortAttribute: the attribute "modes" is a string_list`}},
		{"distances of strings", rules(rule(`"type": "distanceSort", "sortDirection": "ascending", "sortAttribute": "clan"`)), []string{`rules[R].sortAttribute: the attribute "clan" is a string`}},
		{"maps without a key", rules(rule(`"type": "distanceSort", "sortDirection": "ascending", "sortAttribute": "maps"`)), []string{"rules[R].mapKey: it is missing, want minValue or maxValue"}},
		{"maps with a wrong key", rules(rule(`"type": "absoluteSort", "sortDirection": "ascending", "sortAttribute": "maps", "mapKey": "best"`)), []string{`rules[R].mapKey: got "best"`}},

		{"a compound of nothing", rules(rule(`"type": "compound"`)), []string{"rules[R].statement: it is missing"}},
		{"a compound of itself", rules(rule(`"type": "compound", "statement": "not(R)"`)), []string{`rules[R].statement: at character 5 the rule "R" must come before this one`}},
		{"a compound of the unknown", rules(near, rule(`"type": "compound", "statement": "or(Near, Far)"`)), []string{`rules[R].statement: at character 10 the rule "Far" is unknown`}},
		{"a compound of sorts", rules(`{"name": "S", "type": "absoluteSort", "sortDirection": "ascending", "sortAttribute": "skill"}`, rule(`"type": "compound", "statement": "not(S)"`)), []string{`the rule "S" is of type absoluteSort, which cannot be part`}},
		{"one argument", rules(near, rule(`"type": "compound", "statement": "and(Near)"`)), []string{"and takes two rules or more, got 1"}},
		{"two arguments", rules(near, rule(`"type": "compound", "statement": "not(Near, Near)"`)), []string{"not takes one rule, got 2"}},
		{"other logic", rules(near, rule(`"type": "compound", "statement": "nor(Near, Near)"`)), []string{`want and, or, xor or not before '(', got "nor"`}},
		{"an open statement", rules(near, rule(`"type": "compound", "statement": "not(Near"`)), []string{"want ',' or ')'"}},
		{"text behind a statement", rules(near, rule(`"type": "compound", "statement": "not(Near) Near"`)), []string{`want the end, got "Near"`}},
		{"a deep statement", rules(near, rule(`"type": "compound", "statement": "`+strings.Repeat("not(", 65)+"Near"+strings.Repeat(")", 65)+`"`)), []string{"the statement nests deeper than 64"}},

		// Expansions.
		{"no target", expansions(`{"steps": [{"waitTimeSeconds": 5, "value": 1}]}`), []string{"expansions[0].target: it is missing"}},
		{"a target that is none", expansions(`{"target": "algorithm.strategy", "steps": [{"waitTimeSeconds": 5, "value": 1}]}`), []string{`expansions[0].target: got "algorithm.strategy", want teams[name].property or rules[name].property`}},
		{"an unknown team", expansions(`{"target": "teams[a, x].minPlayers", "steps": [{"waitTimeSeconds": 5, "value": 1}]}`), []string{`expansions[0].target: there is no team "x"`}},
		{"an unknown rule", expansions(`{"target": "rules[Far].maxDistance", "steps": [{"waitTimeSeconds": 5, "value": 1}]}`), []string{`expansions[0].target: there is no rule "Far"`}},
		{"a compound rule", expansions(`{"target": "rules[Not].statement", "steps": [{"waitTimeSeconds": 5, "value": 1}]}`), []string{`expansions[0].target: the rule "Not" is a compound rule`}},
		{"a name", expansions(`{"target": "rules[Near].name", "steps": [{"waitTimeSeconds": 5, "value": "x"}]}`), []string{`expansions[0].target: the rule "Near" is of type distance, which has no property "name" that can change`}},
		{"a property of another type", expansions(`{"target": "rules[Near].maxLatency", "steps": [{"waitTimeSeconds": 5, "value": 1}]}`), []string{`has no property "maxLatency"`}},
		{"a team's quantity", expansions(`{"target": "teams[a].quantity", "steps": [{"waitTimeSeconds": 5, "value": 1}]}`), []string{`expansions[0].target: got the property "quantity" of teams, want minPlayers or maxPlayers`}},
		{"no steps", expansions(`{"target": "teams[a].minPlayers", "steps": []}`), []string{"expansions[0].steps: want a list of at least one step"}},
		{"empty steps", expansions(`{"target": "teams[a].minPlayers", "steps": [{}]}`), []string{"expansions[0].steps[0].waitTimeSeconds: it is missing", "expansions[0].steps[0].value: it is missing"}},
		{"waits that stand still", expansions(`{"target": "teams[a].minPlayers", "steps": [{"waitTimeSeconds": 5, "value": 1}, {"waitTimeSeconds": 5, "value": 1}]}`), []string{"expansions[0].steps[1].waitTimeSeconds: got 5 after 5, want waits that increase"}},
		{"a negative wait", expansions(`{"target": "teams[a].minPlayers", "steps": [{"waitTimeSeconds": -5, "value": 1}]}`), []string{"expansions[0].steps[0].waitTimeSeconds: got -5"}},
		{"a value that is none", expansions(`{"target": "rules[Near].maxDistance", "steps": [{"waitTimeSeconds": 5, "value": 6}, {"waitTimeSeconds": 6, "value": "far"}]}`), []string{`expansions[0].steps[1].value: rules[Near].maxDistance: got "far", want a number of at least 0`}},
		{"a team's value that is none", expansions(`{"target": "teams[a].maxPlayers", "steps": [{"waitTimeSeconds": 5, "value": 0}]}`), []string{"expansions[0].steps[0].value: teams[a].maxPlayers: got 0, want a whole number of at least 1"}},
		{"a minimum above the maximum", expansions(`{"target": "teams[a].minPlayers", "steps": [{"waitTimeSeconds": 5, "value": 3}]}, {"target": "teams[a].maxPlayers", "steps": [{"waitTimeSeconds": 6, "value": 3}]}`), []string{"expansions[0].steps[0].value: teams[a].minPlayers: after 5 seconds the team has minPlayers 3 and maxPlayers 2"}},
		{"one property twice", expansions(`{"target": "rules[Near].maxDistance", "steps": [{"waitTimeSeconds": 5, "value": 6}]}, {"target": "rules[Near].maxDistance", "steps": [{"waitTimeSeconds": 50, "value": 6}]}`), []string{`expansions[1].target: another expansion changes the maxDistance of rule "Near" as well`}},
		{"growing beyond 200", expansions(`{"target": "teams[a].maxPlayers", "steps": [{"waitTimeSeconds": 5, "value": 199}]}`), []string{"teams: the teams' maxPlayers, at their largest, sum to 201"}},
		{"growing beyond 40", expansions(`{"target": "teams[*].maxPlayers", "steps": [{"waitTimeSeconds": 5, "value": 30}]}`), []string{"algorithm.strategy: got exhaustiveSearch", "rules[Near].type: rule type distance", "rules[Not].type: rule type compound"}},
		{"a step's expression", expansions(`{"target": "rules[Near].referenceValue", "steps": [{"waitTimeSeconds": 5, "value": "avg(teams[x].players.attributes[skill])"}]}`), []string{`expansions[0].steps[0].value: rules[Near].referenceValue: "avg(teams[x].players.attributes[skill])": the team "x" is unknown`}},
		{"a step's measurements", expansions(`{"target": "rules[Near].measurements", "steps": [{"waitTimeSeconds": 5, "value": ["avg(` + skills + `)", "` + clans + `"]}]}`), []string{`expansions[0].steps[0].value[1]: rules[Near].measurements: "` + clans + `" is a List<string>, want numbers`}},
	} {
		set, problems := Parse(test.body)
		if set != nil {
			t.Errorf("%s: got a rule set, want %q", test.name, test.want)
			continue
		}
		var got []string
		for _, p := range problems {
			got = append(got, p.String())
		}
		if len(got) != len(test.want) {
			t.Errorf("%s: got %d problems, want %d:\n%s", test.name, len(got), len(test.want), strings.Join(got, "\n"))
			continue
		}
		for _, want := range test.want {
			if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, want) }) {
				t.Errorf("%s: got %q, want %q in it", test.name, got, want)
			}
		}
	}
}

// TestSizesOfRuleSets reaches the limits of a body: its characters, its depth, and the players of its teams.
func TestSizesOfRuleSets(t *testing.T) {
	body := func(name, extra string, players int) string {
		return fmt.Sprintf(`{"ruleLanguageVersion": "1.0", "name": %q, "teams": [{"name": "all", "minPlayers": 1, "maxPlayers": %d}]%s}`, name, players, extra)
	}
	padded := func(n int) string { // of n characters
		empty := body("a", "", 10)
		return empty + strings.Repeat(" ", n-len(empty))
	}
	deep := func(n int) string { return `, "x": ` + strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct {
		name, body, want string
	}{
		{"of all characters", padded(bodyMax), ""},
		{"of one more", padded(bodyMax + 1), "the body has 65536 characters, want at most 65535"},
		{"of characters of four bytes", padded(bodyMax*4 + 1), "want at most 65535"},
		{"as deep as may be", body("a", deep(depthMax-1), 10), ""},
		{"deeper", body("a", deep(depthMax), 10), "nest deeper than 64"},
		{"of all players", body("a", "", largeMax), ""},
		{"of one player more", body("a", "", largeMax+1), "sum to 201, want at most 200"},
	} {
		_, problems := Parse(c.body)
		said := fmt.Sprint(problems)
		if c.want == "" && strings.Contains(said, "want at most") || c.want == "" && strings.Contains(said, "deeper") || !strings.Contains(said, c.want) {
			t.Errorf("%s: got %s, want %q", c.name, said, c.want)
		}
	}
}

func TestProblemsComeInOrderAndAreTwentyAtMost(t *testing.T) {
	var teams []string
	for i := range 30 {
		teams = append(teams, fmt.Sprintf(`{"name": "t%d", "minPlayers": 1, "maxPlayers": 0}`, i))
	}
	_, problems := Parse(`{"teams": [` + strings.Join(teams, ",") + `]}`)
	if len(problems) != 20 {
		t.Fatalf("got %d problems, want 20", len(problems))
	}
	if problems[0].Path != "ruleLanguageVersion" || problems[1].Path != "teams[t0].maxPlayers" || problems[19].Path != "teams[t18].maxPlayers" {
		t.Errorf("got %v, want them in the order of the document", problems)
	}
}

func TestStepsMayMendEachOther(t *testing.T) {
	// At 5 s both change, and the result is valid only with both changes.
	mustParse(t, `{"ruleLanguageVersion": "1.0", "teams": [{"name": "a", "minPlayers": 1, "maxPlayers": 2}], "expansions": [
		{"target": "teams[a].minPlayers", "steps": [{"waitTimeSeconds": 5, "value": 3}]},
		{"target": "teams[a].maxPlayers", "steps": [{"waitTimeSeconds": 5, "value": 4}]}]}`)
	// A comparison without reference cannot become one by <, unless it gets a reference.
	head := `{"ruleLanguageVersion": "1.0", "teams": [{"name": "a", "minPlayers": 1, "maxPlayers": 2}], "rules": [` +
		comparison("count(teams[*].players)", `"operation": "="`) + `], "expansions": [
		{"target": "rules[R].operation", "steps": [{"waitTimeSeconds": 5, "value": "<"}]}`
	if _, problems := Parse(head + "]}"); len(problems) != 1 || !strings.HasPrefix(problems[0].String(), "expansions[0].steps[0].value: rules[R].referenceValue: it is missing") {
		t.Errorf("got %v, want the step blamed", problems)
	}
	mustParse(t, head+`, {"target": "rules[R].referenceValue", "steps": [{"waitTimeSeconds": 4, "value": 3}]}]}`)
}

func TestWarnings(t *testing.T) {
	body := `{"ruleLanguageVersion": "1.0", "colour": 1, "playerAttributes": [{"name": "clan", "type": "string", "deflt": "x"}],
		"algorithm": {"sortByAttributes": ["clan"], "balancedAttribute": "clan"},
		"teams": [{"name": "a", "minPlayers": 1, "maxPlayers": 2, "size": 4}], "rules": [
		{"name": "R", "type": "comparison", "description": "x", "measurements": "count(teams[*].players)", "operation": "=", "maxDistance": 4, "maxdistance": 5},
		{"name": "B", "type": "batchDistance", "batchAttribute": "clan", "maxDistance": 5},
		{"name": "L", "type": "latency", "maxLatency": 5, "distanceReference": 5}],
		"expansions": [{"target": "teams[a].minPlayers", "note": 1, "steps": [{"waitTimeSeconds": 1, "value": 1, "x": 1}]}]}`
	want := []string{
		"colour: the property is unknown here and ignored",
		"playerAttributes[clan].deflt: the property is unknown here and ignored; did you mean \"default\"?",
		"algorithm.sortByAttributes: it has no effect without the batchingPreference sorted",
		"algorithm.balancedAttribute: it has no effect without the strategy balanced",
		"teams[a].size: the property is unknown here and ignored",
		"rules[R].maxDistance: a rule of type comparison has no use for it",
		"rules[R].maxdistance: the property is unknown here and ignored",
		"rules[B].maxDistance: it has no effect on a string: all players have the same",
		"rules[L].distanceReference: got 5, want avg or min; numbers are ignored",
		"expansions[0].note: the property is unknown here and ignored",
		"expansions[0].steps[0].x: the property is unknown here and ignored",
	}
	mustParse(t, body)
	var got []string
	for _, w := range Warnings(body) {
		got = append(got, w.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	body = `{"ruleLanguageVersion": "1.0", "playerAttributes": [{"name": "skill", "type": "number"}],
		"algorithm": {"batchingPreference": "sorted", "sortByAttributes": ["skill"]}, "teams": [{"name": "a", "minPlayers": 1, "maxPlayers": 2}]}`
	if got := fmt.Sprint(Warnings(body)); !strings.Contains(got, "algorithm.batchingPreference: it has no effect: Muster searches the whole pool") {
		t.Errorf("got %s, want a warning of sorted batches", got)
	}
	if w := Warnings("{}"); w != nil {
		t.Errorf("got %v of an invalid rule set, want none", w)
	}
}
