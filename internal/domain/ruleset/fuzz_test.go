package ruleset

import (
	"fmt"
	"strings"
	"testing"
)

// FuzzParse: every text gives either a rule set that judges candidates or a few problems.
func FuzzParse(f *testing.F) {
	for _, c := range acceptanceCases(f) {
		f.Add(c.body())
	}
	for _, body := range nonsense() {
		if len(body) < 5000 {
			f.Add(body)
		}
	}
	f.Fuzz(func(t *testing.T, body string) {
		set, problems := Parse(body)
		if (set == nil) != (len(problems) > 0) || len(problems) > problemsMax {
			t.Fatalf("got the rule set %v and %d problems", set, len(problems))
		}
		for _, p := range problems {
			if p.Message == "" || len(p.String()) > 2000 {
				t.Fatalf("got the problem %q", p)
			}
		}
		warnings := Warnings(body)
		if set == nil {
			if warnings != nil {
				t.Fatalf("got warnings %v of an invalid rule set", warnings)
			}
			return
		}
		tryOut(t, set)
	})
}

// tryOut makes every level judge a candidate whose teams have one player each, and one whose teams are empty.
func tryOut(t *testing.T, set *RuleSet) {
	values, err := set.Player(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range values {
		if values[i].Kind == None {
			values[i] = Value{Kind: set.Attributes[i].Kind, Number: float64(i), Text: "x"}
		}
	}
	empty := &Candidate{Teams: make([][]Player, len(set.Teams))}
	c := &Candidate{}
	for i := range set.Teams {
		c.Teams = append(c.Teams, []Player{{ID: fmt.Sprint(i), Ticket: i, Values: values, Latencies: []RegionLatency{{"r", int32(i)}}}})
	}
	for i, wait := range set.Waits() {
		if i > 3 {
			break
		}
		l := set.Level(i)
		if l.Wait != wait || len(l.Teams) != len(set.Teams) || len(l.Rules) != len(set.Rules) || l.Slots > set.PlayersMax {
			t.Fatalf("level %d does not fit its rule set: %+v", i, l)
		}
		l.Evaluate(c)
		l.Evaluate(empty)
	}
	for _, r := range set.Rules {
		if s, ok := r.Form.(*Sort); ok {
			party := [][]Value{values, values}
			s.Compare(s.Key(s.Anchored(party), party), SortKey{Missing: true})
		}
	}
}

// nonsense returns bodies of the maximum size that make a careless parser slow.
func nonsense() map[string]string {
	const head = `{"ruleLanguageVersion": "1.0", "playerAttributes": [{"name": "s", "type": "number"}], `
	duo := `"teams": [{"name": "a", "minPlayers": 1, "maxPlayers": 20}, {"name": "b", "minPlayers": 1, "maxPlayers": 20}], `
	many := func(n int, format string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(parts, ",")
	}
	same := func(n int, part string) string { return strings.Repeat(part+",", n-1) + part }
	chain := `{"name":"r0","type":"comparison","measurements":"count(teams[*])","referenceValue":2,"operation":"="}`
	for i := range 800 {
		chain += fmt.Sprintf(`,{"name":"r%d","type":"compound","statement":"or(r%d,r%d)"}`, i+1, i, i)
	}
	steps := `"steps":[` + many(1500, `{"waitTimeSeconds":%d,"value":1}`) + `]`
	bodies := map[string]string{
		"brackets":       strings.Repeat("[", 65_000),
		"braces":         strings.Repeat(`{"a":`, 13_000),
		"keys":           "{" + many(7000, `"%d":1`) + "}",
		"calls":          head + duo + `"rules": [{"name":"R","type":"comparison","operation":"=","measurements":"` + strings.Repeat("min(", 15_000) + `"}]}`,
		"names":          head + duo + `"rules": [{"name":"R","type":"comparison","operation":"=","measurements":"count(teams[` + strings.Repeat("a,", 30_000) + `a].players)"}]}`,
		"statement":      head + duo + `"rules": [{"name":"R","type":"compound","statement":"` + strings.Repeat("not(", 15_000) + `"}]}`,
		"wide statement": head + duo + `"rules": [{"name":"x","type":"latency","maxLatency":5},{"name":"R","type":"compound","statement":"or(` + strings.Repeat("x,", 30_000) + `x)"}]}`,
		"compounds":      head + duo + `"rules": [` + chain + `]}`,
		"teams":          head + `"teams": [` + many(1000, `{"name":"t%d","minPlayers":0,"maxPlayers":1}`) + `]}`,
		"quantity":       head + `"teams": [` + many(700, `{"name":"t%d","minPlayers":0,"maxPlayers":2147483647,"quantity":2147483647}`) + `]}`,
		"measurements":   head + duo + `"rules": [{"name":"R","type":"comparison","operation":"=","measurements":[` + same(2500, `"count(teams[*].players)"`) + `]}]}`,
		"expanded":       head + duo + `"rules": [` + many(250, `{"name":"r%d","type":"latency","maxLatency":5}`) + `], "expansions": [{"target":"rules[*].maxLatency",` + steps + `}]}`,
		"expanded measurements": head + duo + `"rules": [{"name":"R","type":"distance","referenceValue":5,"maxDistance":5,"measurements":[` +
			same(500, `"count(teams[*].players)"`) + `]}], "expansions": [{"target":"rules[R].maxDistance",` + steps + `}]}`,
		"levels":   head + duo + `"rules": [` + many(200, `{"name":"r%d","type":"latency","maxLatency":5}`) + `], "expansions": [{"target":"rules[r0].maxLatency",` + steps + `}]}`,
		"problems": head + duo + `"rules": [` + same(10_000, `5`) + `]}`,
	}
	return bodies
}

// TestNonsenseIsCheap would not end if parsing or judging took more than linear time.
func TestNonsenseIsCheap(t *testing.T) {
	for name, body := range nonsense() {
		set, problems := Parse(body)
		if set == nil && len(problems) == 0 || len(problems) > problemsMax {
			t.Errorf("%s: got %d problems", name, len(problems))
		}
		if set != nil {
			tryOut(t, set)
		}
		if len(body) > bodyMax {
			t.Errorf("%s: has %d characters, which tests nothing", name, len(body))
		}
	}
	if set, _ := Parse(nonsense()["expanded"]); set != nil {
		t.Error("375,000 changes were built")
	}
}

func BenchmarkParse(b *testing.B) {
	bodies := nonsense()
	bodies["usual"] = acceptanceCases(b)["ex10-compound-similar-players"].body()
	for name, body := range bodies {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				Parse(body)
			}
		})
	}
}

func BenchmarkEvaluate(b *testing.B) {
	for name, r := range map[string]string{
		"spread":   distance("max("+skills+")", "min("+skills+")", `"maxDistance": 50`),
		"means":    distance("avg(teams[*].players.attributes[skill])", "avg("+skills+")", `"maxDistance": 50`),
		"common":   collection(modes, `"operation": "intersection", "minCount": 1`),
		"literal":  comparison(skills, `"referenceValue": 1, "operation": ">"`),
		"latency":  rule(`"type": "latency", "maxLatency": 80`),
		"batch":    rule(`"type": "batchDistance", "batchAttribute": "skill", "maxDistance": 80`),
		"nonsense": comparison(strings.Repeat("max(", 2)+"count(teams[*].players.attributes[modes]"+strings.Repeat(")", 3), `"referenceValue": 9, "operation": "<"`),
	} {
		set := exampleSet(b, r)
		c := exampleCandidate(b, set)
		for team := range c.Teams {
			for i := range c.Teams[team] {
				c.Teams[team][i].Latencies = []RegionLatency{{"a", 20}, {"b", 50}, {"c", 90}}
			}
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				set.Level(0).Evaluate(c)
			}
		})
	}
}
