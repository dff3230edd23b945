package simulate

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

const duel = `{
	"ruleLanguageVersion": "1.0",
	"playerAttributes": [{"name": "skill", "type": "number"}, {"name": "mode", "type": "string", "default": "siege"}],
	"teams": [{"name": "one", "minPlayers": 1, "maxPlayers": 1}, {"name": "two", "minPlayers": 1, "maxPlayers": 1}],
	"rules": [{"name": "Near", "type": "distance", "measurements": ["max(flatten(teams[*].players.attributes[skill]))"],
		"referenceValue": "min(flatten(teams[*].players.attributes[skill]))", "maxDistance": 5}],
	"expansions": [{"target": "rules[Near].maxDistance", "steps": [{"waitTimeSeconds": 10, "value": 50}]}]
}`

func parse(t *testing.T, body string) *ruleset.RuleSet {
	t.Helper()
	rules, problems := ruleset.Parse(body)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return rules
}

func single(at float64, ticket string, skill float64, mode string, ms int32) Arrival {
	p := Player{ID: ticket + "-1", Latencies: []matcher.Latency{{Region: "eu", Milliseconds: ms}}}
	if skill >= 0 {
		p.Attributes = append(p.Attributes, ruleset.NamedValue{Name: "skill", Value: ruleset.Value{Kind: ruleset.Number, Number: skill}})
	}
	p.Attributes = append(p.Attributes, ruleset.NamedValue{Name: "mode", Value: ruleset.Value{Kind: ruleset.String, Text: mode}})
	return Arrival{At: time.Duration(at * float64(time.Second)), Ticket: ticket, Players: []Player{p}}
}

func TestReportSaysWhatHappened(t *testing.T) {
	arrivals := []Arrival{
		single(0, "a", 10, "siege", 20),
		single(2, "b", 12, "siege", 40),  // meets a at once: 2 s and 0 s
		single(5, "c", 100, "siege", 30), // meets d when both are 10 s old
		single(6, "d", 140, "race", 60),
		single(7, "e", -1, "siege", 30),  // has no skill
		single(8, "f", 900, "siege", 30), // too far from all others
	}
	r, err := Run(t.Context(), parse(t, duel), Settings{Name: "duel", RequestTimeout: 30 * time.Second}, arrivals)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Count{Arrived: 6, Matched: 4, TimedOut: 2, Unmatchable: 1}); r.Tickets != want || r.Players != want {
		t.Errorf("tickets %+v, players %+v, want %+v", r.Tickets, r.Players, want)
	}
	if r.Matches != (Matches{Count: 2, Full: 2, Players: 2}) {
		t.Errorf("matches %+v, want 2 full ones of two players", r.Matches)
	}
	if w := r.Wait; w.Count != 4 || w.P50 != 2 || w.Max != 11 || w.Mean != (0+2+10+11)/4.0 {
		t.Errorf("wait %+v, want 0, 2, 10 and 11 s", w)
	}
	if want := []LevelUse{{0, 1, 2}, {10, 1, 2}}; !reflect.DeepEqual(r.Levels, want) {
		t.Errorf("levels %+v, want %+v", r.Levels, want)
	}
	if n := r.Numbers; len(n) != 1 || n[0].Within.P50 != 2 || n[0].Within.Max != 40 || n[0].Teams.Max != 40 {
		t.Errorf("numbers %+v, want spreads of 2 and 40", n)
	}
	if want := []WordQuality{{"mode", 1}}; !reflect.DeepEqual(r.Words, want) {
		t.Errorf("words %+v, want %+v", r.Words, want)
	}
	if l := r.Latency; l == nil || l.Worst.P50 != 40 || l.Worst.Max != 60 || l.Mean.Max != 45 || l.WithoutRegion != 0 {
		t.Errorf("latency %+v, want 40 and 60 ms for the farthest", l)
	}
	sum := Span{}
	for _, s := range r.OverTime {
		sum.Arrived, sum.Matched, sum.TimedOut = sum.Arrived+s.Arrived, sum.Matched+s.Matched, sum.TimedOut+s.TimedOut
	}
	if sum.Arrived != 6 || sum.Matched != 4 || sum.TimedOut != 2 {
		t.Errorf("over time %+v in all, want 6, 4 and 2", sum)
	}
}

func TestWrongAttributesAreNamedBeforeAnythingRuns(t *testing.T) {
	a := single(0, "a", 1, "siege", 20)
	a.Players[0].Attributes[0].Value = ruleset.Value{Kind: ruleset.String, Text: "x"}
	_, err := Run(t.Context(), parse(t, duel), Settings{}, []Arrival{a})
	if err == nil || !strings.Contains(err.Error(), "ticket a") || !strings.Contains(err.Error(), "skill") {
		t.Errorf("got %v, want the ticket and the attribute", err)
	}
}

// TestReportNamesMissingAttributes: a population without an attribute that the rule set needs is told which.
func TestReportNamesMissingAttributes(t *testing.T) {
	large := single(2, "c", 10, "siege", 20)
	large.Players = append(large.Players, large.Players[0])
	r, err := Run(t.Context(), parse(t, duel), Settings{Name: "duel", RequestTimeout: 30 * time.Second}, []Arrival{
		single(0, "a", -1, "siege", 20), single(1, "b", -1, "siege", 20), large,
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []Lack{{"skill", 2}, {"", 1}}; !reflect.DeepEqual(r.Lacks, want) {
		t.Errorf("got %+v, want %+v", r.Lacks, want)
	}
	var out bytes.Buffer
	if err := WriteTable(&out, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"no value for skill", "party too large"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, &out)
		}
	}
}

// TestLabelsOfAnAxisDoNotTouch draws charts with few and with many places, and with short and with long labels.
func TestLabelsOfAnAxisDoNotTouch(t *testing.T) {
	label := regexp.MustCompile(`<text x="([0-9.]+)" y="232" text-anchor="middle">([^<]*)</text>`)
	for _, length := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour, 30 * 24 * time.Hour} {
		for _, parts := range []int{6, 13, 48, 97} {
			c := &chart{}
			for i := range parts {
				c.places = append(c.places, clock((length * time.Duration(i) / time.Duration(parts)).Seconds()))
			}
			end, labels := 0.0, label.FindAllStringSubmatch(string(c.svg()), -1)
			if len(labels) < 3 {
				t.Fatalf("%s in %d parts: %d labels, want some", length, parts, len(labels))
			}
			for _, l := range labels {
				x, _ := strconv.ParseFloat(l[1], 64)
				half := 7 * float64(len(l[2])) / 2
				if x-half < end {
					t.Errorf("%s in %d parts: the label %s touches the one before", length, parts, l[2])
				}
				end = x + half
			}
		}
	}
	for seconds, want := range map[float64]string{0: "0:00", 7200: "2:00", 90: "0:01:30", 100_800: "28:00"} {
		if got := clock(seconds); got != want {
			t.Errorf("%g s: got %s, want %s", seconds, got, want)
		}
	}
}

func TestNobodyComes(t *testing.T) {
	r, err := Run(t.Context(), parse(t, duel), Settings{Name: "duel"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteTable(&out, r); err != nil {
		t.Fatal(err)
	}
	if err := WritePage(&out, r); err != nil {
		t.Fatal(err)
	}
}

// The example of the guide: what the patient rule set gains and costs is what its README promises.
func TestExampleHasItsPromisedEffect(t *testing.T) {
	f, err := os.Open("../../examples/matchmaking/population.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	population, err := ReadPopulation(f)
	if err != nil {
		t.Fatal(err)
	}
	arrivals, err := population.Draw(20*time.Minute, 1)
	if err != nil {
		t.Fatal(err)
	}
	var reports []*Report
	for _, name := range []string{"ranked.json", "ranked-patient.json", "ranked.json"} {
		body, err := os.ReadFile("../../examples/matchmaking/" + name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(t.Context(), parse(t, string(body)), Settings{Name: name, Seed: 1}, arrivals)
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, r)
	}
	if !reflect.DeepEqual(reports[0], reports[2]) {
		t.Error("two runs of the same are not alike")
	}
	quick, patient := reports[0], reports[1]
	if quick.Matches.Count == 0 || patient.Matches.Count == 0 {
		t.Fatalf("matches: %d and %d", quick.Matches.Count, patient.Matches.Count)
	}
	if quick.Wait.Mean >= patient.Wait.Mean || quick.Numbers[0].Within.Mean <= patient.Numbers[0].Within.Mean {
		t.Errorf("waits %g and %g, spreads of skill %g and %g: want the patient one slower and nearer",
			quick.Wait.Mean, patient.Wait.Mean, quick.Numbers[0].Within.Mean, patient.Numbers[0].Within.Mean)
	}
	var text, html bytes.Buffer
	if err := WriteTable(&text, quick, patient); err != nil {
		t.Fatal(err)
	}
	if err := WritePage(&html, quick, patient); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ranked-patient.json", strconv.Itoa(quick.Matches.Count), "skill: spread in a match", "matches made from 60 s on"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, &text)
		}
	}
	for _, never := range []string{"http:", "https:", "NaN", "<script", "src="} {
		if strings.Contains(html.String(), never) {
			t.Errorf("the page holds %q; it must need nothing from elsewhere", never)
		}
	}
	var back Report
	body, err := json.Marshal(quick)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &back); err != nil || !reflect.DeepEqual(&back, quick) {
		t.Errorf("a report does not survive JSON: %v", err)
	}
}
