package main

import (
	"path/filepath"
	"strings"
	"testing"
)

const tried = "../../examples/matchmaking/"

func TestSimulate(t *testing.T) {
	dir := t.TempDir()
	page, report, lines := filepath.Join(dir, "r.html"), filepath.Join(dir, "r.json"), filepath.Join(dir, "a.jsonl")
	made := mustRun(t, nil, "simulate", tried+"ranked.json", "--compare", tried+"ranked-patient.json", "--population", tried+"population.json", "--for", "3m",
		"--html", page, "--json", report, "--write-arrivals", lines)
	if !strings.Contains(made, "ranked-patient.json") || !strings.Contains(made, "wait: mean") {
		t.Errorf("table:\n%s", made)
	}
	if !strings.Contains(get(t, page), "<svg") || !strings.Contains(get(t, report), `"ruleSet": "ranked-patient.json"`) {
		t.Error("the page has no picture, or the report no second rule set")
	}
	if again := mustRun(t, nil, "simulate", tried+"ranked.json", "--compare", tried+"ranked-patient.json", "--arrivals", lines); again != made {
		t.Errorf("the arrivals that were written give another report:\n%s\nbefore:\n%s", again, made)
	}
	differing := mustRun(t, nil, "simulate", tried+"ranked.json", "--compare", tried+"ranked-patient.json", "--arrivals", lines, "--differences", "3")
	if rest, ok := strings.CutPrefix(differing, made); !ok || !strings.HasPrefix(rest, "Only the second matches ") || strings.Count(rest, "\n") != 4 {
		t.Errorf("got %s, want the report and three tickets", differing)
	}
}

func TestSimulateSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	broken, wrong := filepath.Join(dir, "broken.json"), filepath.Join(dir, "wrong.csv")
	put(t, broken, `{"ruleLanguageVersion": "1.0"}`)
	put(t, wrong, "at,ticket,skill\n1,a,x\n")
	for want, args := range map[string][]string{
		"either --population or --arrivals": {tried + "ranked.json"},
		"teams":                             {broken, "--population", tried + "population.json"},
		`line 2: skill: "x"`:                {tried + "ranked.json", "--arrivals", wrong},
		"--request-timeout":                 {tried + "ranked.json", "--population", tried + "population.json", "--request-timeout", "20h"},
		"--differences requires --compare":  {tried + "ranked.json", "--population", tried + "population.json", "--differences", "5"},
	} {
		if out, err := runForTest(t, nil, append([]string{"simulate"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %q, %v, want an error that says %q", args, out, err, want)
		}
	}
}
