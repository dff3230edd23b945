package ruleset

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
)

const guide = "../../../docs/guide/rule-sets.md"

// TestGuideExamples replaces parts of the manual's first example by each other one, and wants a valid rule set without warnings.
func TestGuideExamples(t *testing.T) {
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```json\n")[1:]
	if len(blocks) < 10 {
		t.Fatalf("got %d examples, want the manual's", len(blocks))
	}
	var whole map[string]json.RawMessage
	for i, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		if i > 0 {
			text = "{" + text + "}"
		}
		var parts map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &parts); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		if i == 0 {
			whole = parts
		}
		together := maps.Clone(whole)
		maps.Copy(together, parts)
		body, err := json.Marshal(together)
		if err != nil {
			t.Fatal(err)
		}
		if set, problems := Parse(string(body)); set == nil {
			t.Errorf("got %v of the example\n%s", problems, text)
		}
		if warnings := Warnings(string(body)); len(warnings) > 0 {
			t.Errorf("got the warnings %v of the example\n%s", warnings, text)
		}
	}
}

// TestGuideExpressions computes the manual's table.
func TestGuideExpressions(t *testing.T) {
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	set := exampleSet(t)
	rows := regexp.MustCompile("(?m)^\\| `(.*teams\\[.*)` \\| (.*) \\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 15 {
		t.Fatalf("got %d rows, want the manual's", len(rows))
	}
	for _, row := range rows {
		s, wrong := parseExpression(row[1])
		if wrong != nil {
			t.Errorf("%s: %s", row[1], wrong.text)
			continue
		}
		e, err := exampleNames(set).resolve(s)
		if err != nil {
			t.Errorf("%s: %v", row[1], err)
			continue
		}
		if n := e.evaluate(exampleCandidate(t, set)); n.String() != row[2] {
			t.Errorf("%s: got %s, the manual says %s", row[1], n.String(), row[2])
		}
	}
}

// TestGuideProblems: the manual shows the problems that its mistakes cause.
func TestGuideProblems(t *testing.T) {
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```json\n")
	body, _, _ := strings.Cut(block, "```")
	body = strings.Replace(body, `max(flatten(teams[*].players.attributes[skill]))`, `max(flatten(teams[*].players.attributes[skil]))`, 1)
	body = strings.Replace(body, `"waitTimeSeconds": 30`, `"waitTimeSeconds": 15`, 1)
	_, problems := Parse(body)
	if len(problems) != 2 {
		t.Fatalf("got %v, want two problems", problems)
	}
	for _, p := range problems {
		if !strings.Contains(string(page), "    "+p.String()+"\n") {
			t.Errorf("the manual does not have %s", p)
		}
	}
}
