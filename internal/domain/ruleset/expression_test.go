package ruleset

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// example is docs/spec/flexmatch.md#expression-example: two teams, five players, and attributes of each type.
const exampleHead = `"ruleLanguageVersion": "1.0", "playerAttributes": [
	{"name": "skill", "type": "number"}, {"name": "modes", "type": "string_list"}, {"name": "clan", "type": "string"},
	{"name": "maps", "type": "string_number_map", "default": {"a": 1}}],
	"teams": [{"name": "red", "minPlayers": 0, "maxPlayers": 5}, {"name": "blue", "minPlayers": 0, "maxPlayers": 5}]`

func exampleSet(t testing.TB, rules ...string) *RuleSet {
	t.Helper()
	return mustParse(t, "{"+exampleHead+`, "rules": [`+strings.Join(rules, ",")+"]}")
}

func mustParse(t testing.TB, body string) *RuleSet {
	t.Helper()
	set, problems := Parse(body)
	if set == nil {
		t.Fatalf("%s: got %v, want a valid rule set", body, problems)
	}
	return set
}

func examplePlayer(t testing.TB, set *RuleSet, id string, ticket int, skill float64, clan string, modes ...string) Player {
	t.Helper()
	values, err := set.Player([]NamedValue{
		{"skill", Value{Kind: Number, Number: skill}}, {"clan", Value{Kind: String, Text: clan}},
		{"modes", Value{Kind: List, List: modes}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return Player{ID: id, Ticket: ticket, Values: values}
}

func exampleCandidate(t testing.TB, set *RuleSet) *Candidate {
	t.Helper()
	return &Candidate{Teams: [][]Player{
		{examplePlayer(t, set, "ann", 0, 10, "K", "ctf", "koth"), examplePlayer(t, set, "bob", 1, 20, "K", "koth")},
		{
			examplePlayer(t, set, "cyd", 2, 30, "K", "koth", "race"), examplePlayer(t, set, "dee", 3, 50, "L", "koth", "ctf"),
			examplePlayer(t, set, "eve", 4, 40, "M", "koth"),
		},
	}}
}

// exampleNames returns the names that expressions can use in the example.
func exampleNames(set *RuleSet) *names {
	return &names{
		attributes: set.Attributes, column: set.column, all: []int{0, 1},
		teams: map[string][]int{"red": {0}, "blue": {1}},
	}
}

// String writes a value with brackets, like the guide's table.
func (n *nested) String() string {
	if n.undefined {
		return "undefined"
	}
	leaf := 0
	var list func(depth int, starts []int) string
	list = func(depth int, starts []int) string {
		if depth == n.depth {
			leaf++
			switch {
			case len(n.numbers) > 0:
				return fmt.Sprintf("%.6g", n.numbers[leaf-1])
			case len(n.texts) > 0:
				return n.texts[leaf-1]
			default:
				return "?"
			}
		}
		length := n.lens[depth][starts[depth]]
		starts[depth]++
		parts := make([]string, length)
		for i := range parts {
			parts[i] = list(depth+1, starts)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return list(0, make([]int, n.depth))
}

func TestExpressionsOfTheGuide(t *testing.T) {
	set := exampleSet(t)
	c := exampleCandidate(t, set)
	for _, test := range []struct{ text, typ, value string }{
		{"teams[red].players[playerId]", "List<string>", "[ann, bob]"},
		{"flatten(teams[*].players[playerId])", "List<string>", "[ann, bob, cyd, dee, eve]"},
		{"teams[red].players.attributes[skill]", "List<number>", "[10, 20]"},
		{"teams[*].players.attributes[skill]", "List<List<number>>", "[[10, 20], [30, 50, 40]]"},
		{"flatten(teams[*].players.attributes[skill])", "List<number>", "[10, 20, 30, 50, 40]"},
		{"avg(teams[red].players.attributes[skill])", "number", "15"},
		{"avg(teams[*].players.attributes[skill])", "List<number>", "[15, 40]"},
		{"avg(flatten(teams[*].players.attributes[skill]))", "number", "30"},
		{"max(avg(teams[*].players.attributes[skill]))", "number", "40"},
		{"max(min(teams[*].players.attributes[skill]))", "number", "30"},
		{"sum(teams[*].players.attributes[skill])", "List<number>", "[30, 120]"},
		{"median(flatten(teams[*].players.attributes[skill]))", "number", "30"},
		{"median(teams[*].players.attributes[skill])", "List<number>", "[15, 40]"},
		{"stddev(flatten(teams[*].players.attributes[skill]))", "number", "14.1421"},
		{"count(teams[*])", "number", "2"},
		{"count(teams[*].players)", "List<number>", "[2, 3]"},
		{"count(flatten(teams[*].players))", "number", "5"},
		{"max(count(teams[*].players))", "number", "3"},
		{"teams[*].players.attributes[modes]", "List<List<List<string>>>", "[[[ctf, koth], [koth]], [[koth, race], [koth, ctf], [koth]]]"},
		{"flatten(teams[*].players.attributes[modes])", "List<List<string>>", "[[ctf, koth], [koth], [koth, race], [koth, ctf], [koth]]"},
		{"set_intersection(teams[*].players.attributes[modes])", "List<List<string>>", "[[koth], [koth]]"},
		{"set_intersection(flatten(teams[*].players.attributes[modes]))", "List<string>", "[koth]"},
		{"count(set_intersection(flatten(teams[*].players.attributes[modes])))", "number", "1"},
		{"count(flatten(teams[*].players.attributes[modes]))", "List<number>", "[2, 1, 2, 2, 1]"},
		{"flatten(flatten(teams[*].players.attributes[modes]))", "List<string>", "[ctf, koth, koth, koth, race, koth, ctf, koth]"},
		{"set_intersection(teams[*].players.attributes[clan])", "List<string>", "[K]"},

		{" count ( teams [ * ] . players ) ", "List<number>", "[2, 3]"},
		{"teams[blue , red].players[PLAYERID]", "List<List<string>>", "[[ann, bob], [cyd, dee, eve]]"},
		{"teams[blue,blue].players[playerid]", "List<List<string>>", "[[cyd, dee, eve]]"},
		{"count(teams[*].players.attributes[modes])", "List<List<number>>", "[[2, 1], [2, 2, 1]]"},
		{"count(teams[blue].players.attributes[maps])", "number", "3"},
		{"count(flatten(teams[*].players.attributes[maps]))", "number", "5"},
	} {
		s, err := parseExpression(test.text)
		if err != nil {
			t.Errorf("%s: got %s, want an expression", test.text, err.text)
			continue
		}
		e, wrong := exampleNames(set).resolve(s)
		if wrong != nil {
			t.Errorf("%s: got %v, want an expression", test.text, wrong)
			continue
		}
		if n := e.evaluate(c); n.String() != test.value || e.Type.String() != test.typ {
			t.Errorf("%s: got the %s %s, want the %s %s", test.text, e.Type, n.String(), test.typ, test.value)
		}
	}
}

func TestExpressionsOfEmptyTeams(t *testing.T) {
	set := exampleSet(t)
	c := exampleCandidate(t, set)
	c.Teams[0] = nil
	for text, want := range map[string]string{
		"avg(teams[*].players.attributes[skill])":                       "undefined",
		"max(avg(teams[*].players.attributes[skill]))":                  "undefined",
		"avg(flatten(teams[*].players.attributes[skill]))":              "40",
		"min(teams[red].players.attributes[skill])":                     "undefined",
		"median(teams[red].players.attributes[skill])":                  "undefined",
		"stddev(teams[red].players.attributes[skill])":                  "undefined",
		"sum(teams[*].players.attributes[skill])":                       "[0, 120]",
		"count(teams[*].players)":                                       "[0, 3]",
		"teams[*].players.attributes[modes]":                            "[[], [[koth, race], [koth, ctf], [koth]]]",
		"set_intersection(teams[*].players.attributes[modes])":          "undefined",
		"set_intersection(flatten(teams[*].players.attributes[modes]))": "[koth]",
		"flatten(teams[*].players[playerId])":                           "[cyd, dee, eve]",
		"count(teams[red].players.attributes[modes])":                   "[]",
	} {
		s, _ := parseExpression(text)
		e, err := exampleNames(set).resolve(s)
		if err != nil {
			t.Fatal(err)
		}
		if n := e.evaluate(c); n.String() != want {
			t.Errorf("%s: got %s, want %s", text, n.String(), want)
		}
	}
}

func TestExpressionErrors(t *testing.T) {
	set := exampleSet(t)
	for text, want := range map[string]string{
		"":                                    "want a function or teams[…], got the end",
		"avg":                                 "want '(', got the end",
		"avg(teams[*]":                        "want ')', got the end",
		"teams[*] x":                          `at character 10 want the end, got "x"`,
		"teams[]":                             "want a name",
		"teams[a,]":                           "want a name",
		"teams[red].players.attributes[a,b]":  "want the name of one attribute, got 2",
		"teams[red].players.attributes":       "want '['",
		"teams[red].players[name]":            `want playerId, got "name"`,
		"teams[red].name":                     "want players",
		"team[red].players":                   "want a function or teams[…]",
		"Avg(teams[*].players)":               "want a function or teams[…]",
		"teams[green]":                        `the team "green" is unknown`,
		"teams[red,green]":                    `the team "green" is unknown`,
		"teams[red].players.attributes[mood]": `the attribute "mood" is not declared`,
		"flatten(teams[red].players.attributes[skill])":               "flatten takes a list of lists, got List<number>",
		"avg(teams[red].players.attributes[clan])":                    "avg takes a list of numbers, got List<string>",
		"avg(avg(teams[red].players.attributes[skill]))":              "avg takes a list of numbers, got number",
		"count(teams[red])":                                           "count takes a list, got Team",
		"set_intersection(teams[red].players[playerId])":              "set_intersection takes lists of strings, got List<string>",
		"set_intersection(teams[*].players)":                          "set_intersection takes lists of strings",
		"sum(teams[red].players.attributes[maps])":                    "sum takes a list of numbers, got List<string_number_map>",
		strings.Repeat("min(", 17) + "teams[*]" + ")))))))))))))))))": "calls nest 17 deep, want at most 16",
	} {
		got := ""
		s, err := parseExpression(text)
		if err != nil {
			got = err.text
		} else if _, wrong := exampleNames(set).resolve(s); wrong != nil {
			got = wrong.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestHugeNumbersHaveNoSum(t *testing.T) {
	set := exampleSet(t)
	c := exampleCandidate(t, set)
	for i := range c.Teams[1] {
		c.Teams[1][i].Values[0].Number = 1e308
	}
	for _, text := range []string{"sum", "avg", "stddev"} {
		s, _ := parseExpression(text + "(teams[blue].players.attributes[skill])")
		e, _ := exampleNames(set).resolve(s)
		if n := e.evaluate(c); !n.undefined {
			t.Errorf("%s: got %s, want undefined", text, n.String())
		}
	}
	if !math.IsInf(Difference(1e308, -1e308, false), 1) || AtMost(math.Inf(1), 1e308) {
		t.Error("got the distance of huge numbers within a bound")
	}
}
