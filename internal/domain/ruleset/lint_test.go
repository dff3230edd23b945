package ruleset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const lintFrame = `{
"ruleLanguageVersion": "1.0",
"playerAttributes": [{"name": "skill", "type": "number"}, {"name": "role", "type": "string"}],
"teams": [{"name": "red", "minPlayers": 5, "maxPlayers": 5}, {"name": "blue", "minPlayers": 5, "maxPlayers": 5}],
%s
}`

func TestLint(t *testing.T) {
	spread := `"rules": [{"name": "Near", "type": "distance", "measurements": "max(flatten(teams[*].players.attributes[skill]))",
 "referenceValue": "min(flatten(teams[*].players.attributes[skill]))", %s}]`
	count := `"rules": [{"name": "Full", "type": "comparison", "measurements": "count(%s)", "operation": ">=", "referenceValue": %d}]`
	for _, test := range []struct{ parts, want string }{
		{`"rules": []`, ""},
		{`"algoritm": {}`, `5:13: algoritm: the property is unknown here and ignored; did you mean "algorithm"?`},
		{fmt.Sprintf(spread, `"maxDistance": 5, "maxDistnace": 10`), `6:105: rules[Near].maxDistnace: the property is unknown here and ignored; did you mean "maxDistance"?`},
		{fmt.Sprintf(spread, `"minDistance": 6, "maxDistance": 5`), `5:11: rules[Near]: no match can ever satisfy the rule: minDistance is 6, more than maxDistance, which is 5`},
		{fmt.Sprintf(spread, `"minDistance": 6, "maxDistance": 5`) + `, "expansions": [{"target": "rules[Near].maxDistance", "steps": [{"waitTimeSeconds": 10, "value": 9}]}]`, ""},
		{fmt.Sprintf(spread, `"maxDistance": 5`) + `, "expansions": [{"target": "rules[Near].maxDistance", "steps": [{"waitTimeSeconds": 299, "value": 9}, {"waitTimeSeconds": 300, "value": 10}]}]`,
			"expansions[0].steps[1].waitTimeSeconds: it waits 300 s, and requests time out after 300 s, so the step never takes effect; shorten the wait, or raise RequestTimeoutSeconds above it"},
		{fmt.Sprintf(count, "teams[red].players", 6), "no match can ever satisfy the rule: it requires a number of players >= 6, and there are 5 to 5"},
		{fmt.Sprintf(count, "flatten(teams[*].players)", 11), "it requires a number of players >= 11, and there are 10 to 10"},
		{fmt.Sprintf(count, "flatten(teams[*].players)", 10), ""},
		{`"rules": [{"name": "Healers", "type": "collection", "operation": "contains", "measurements": "teams[red].players.attributes[role]", "referenceValue": "healer", "minCount": 6}]`,
			"minCount is 6, and the teams that it counts in take 5 players"},
		{`"expansions": [{"target": "teams[red].minPlayers", "steps": [{"waitTimeSeconds": 10, "value": 4}]}]`, ""},
		{fmt.Sprintf(spread, `"maxDistance": -1`), `6:87: rules[Near].maxDistance: got -1, want a number of at least 0`},
		{`"rules": [{"name": "R", "type": "comparison", "measurements": "teams[red].players.attributes[skil]", "operation": "="}]`, `did you mean "skill"?`},
		{`"rules": [{"name": "R", "type": "comparison", "measurements": "count(teams[rad].players)", "operation": "="}]`, `did you mean "red"?`},
	} {
		var texts []string
		for _, f := range Lint(fmt.Sprintf(lintFrame, test.parts), 300) {
			texts = append(texts, fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Problem))
		}
		if found := strings.Join(texts, "\n"); test.want == "" && found != "" || !strings.Contains(found, test.want) || len(texts) > 1 {
			t.Errorf("%s:\ngot  %s\nwant %s", test.parts, found, test.want)
		}
	}
}

func TestLintOfMinimumSizes(t *testing.T) {
	body := strings.Replace(fmt.Sprintf(lintFrame, `"rules": []`), `"minPlayers": 5`, `"minPlayers": 2`, 1)
	found := Lint(body, 300)
	if len(found) != 1 || found[0].Line != 4 || !strings.Contains(found[0].String(), "teams[red].minPlayers: a match with 2 of 5 players") {
		t.Errorf("got %v, want one for the team red", found)
	}
	body = strings.Replace(body, `"rules": []`, `"expansions": [{"target": "teams[red].minPlayers", "steps": [{"waitTimeSeconds": 10, "value": 1}]}]`, 1)
	if found := Lint(body, 300); len(found) != 0 {
		t.Errorf("got %v, want none when a step changes the minimum", found)
	}
}

// TestLintSaysWhatParseSays: both report the same errors.
func TestLintSaysWhatParseSays(t *testing.T) {
	for name, c := range acceptanceCases(t) {
		_, problems := Parse(c.body())
		found := Lint(c.body(), 600)
		if wrong := slices.ContainsFunc(found, func(f Finding) bool { return f.Wrong }); wrong != (len(problems) > 0) {
			t.Errorf("%s: got %v, want errors: %t", name, found, len(problems) > 0)
		}
	}
}

// TestSimilarNamesAreSearchedForTheFirstUnknownOnes: a body with a thousand unknown names and as many declared ones took a second.
func TestSimilarNamesAreSearchedForTheFirstUnknownOnes(t *testing.T) {
	var unknown []string
	for i := range 2 * hintsMax {
		unknown = append(unknown, fmt.Sprintf(`"teams[*].players.attributes[skil%d]"`, i))
	}
	body := func(attribute, measurements string) string {
		return `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"` + attribute + `","type":"number"}],"teams":[{"name":"t","minPlayers":1,"maxPlayers":2}],
"rules":[{"name":"r","type":"comparison","operation":"=","measurements":[` + measurements + `]}]}`
	}
	hints := func(body string) (n int) {
		for _, f := range Lint(body, 60) {
			n += strings.Count(f.Message, "did you mean")
		}
		return n
	}
	if n := hints(body("skill", strings.Join(unknown, ","))); n != hintsMax {
		t.Errorf("%d hints, want %d", n, hintsMax)
	}
	long := strings.Repeat("n", 20_000)
	if n := hints(body(long, `"teams[*].players.attributes[`+long+`m]"`)); n != 0 {
		t.Errorf("%d hints for a name that no message shows, want none", n)
	}
}
