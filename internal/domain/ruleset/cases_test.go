package ruleset

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// acceptanceCase has what this package reads of a case, docs/spec/flexmatch-cases.md#keys: its rule set, and whether it is valid.
type acceptanceCase struct {
	RuleSet json.RawMessage
	Text    string `json:"ruleSetText"`
	Expect  struct {
		Valid       *bool
		MentionsAny []string `json:"errorMentionsAny"`
	}
}

func (c acceptanceCase) body() string {
	if c.Text != "" {
		return c.Text
	}
	return string(c.RuleSet)
}

func acceptanceCases(t testing.TB) map[string]acceptanceCase {
	t.Helper()
	files, err := filepath.Glob("testdata/cases/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	cases := make(map[string]acceptanceCase)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c acceptanceCase
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		cases[strings.TrimSuffix(filepath.Base(file), ".json")] = c
	}
	return cases
}

func TestCases(t *testing.T) {
	for name, c := range acceptanceCases(t) {
		t.Run(name, func(t *testing.T) {
			set, problems := Parse(c.body())
			if c.Expect.Valid == nil || *c.Expect.Valid {
				if set == nil {
					t.Fatalf("got %v, want a valid rule set", problems)
				}
				if set.Level(0) == nil || len(set.Level(0).Teams) != len(set.Teams) {
					t.Fatalf("got no level for each team")
				}
				return
			}
			text := ""
			for _, p := range problems {
				text += p.String() + "\n"
			}
			if set != nil || len(problems) == 0 {
				t.Fatalf("got a rule set, want problems")
			}
			if len(c.Expect.MentionsAny) == 0 {
				return
			}
			for _, mention := range c.Expect.MentionsAny {
				if strings.Contains(strings.ToLower(text), strings.ToLower(mention)) {
					return
				}
			}
			t.Errorf("got %q, want one of %q in it", text, c.Expect.MentionsAny)
		})
	}
}
