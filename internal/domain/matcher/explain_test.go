package matcher

import (
	"fmt"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

func TestExplain(t *testing.T) {
	rules := mustParse(t, fiveOnFive)
	m := New(rules, Config{Name: "explain"})
	add := func(key uint64, skill float64, mode string, ms int32) {
		t.Helper()
		err := m.Add(Ticket{Key: key, Start: benchStart, No: key, Players: []Player{{ID: fmt.Sprint(key),
			Attributes: []ruleset.NamedValue{number("skill", skill), text("mode", mode)}, Latencies: []Latency{{"east", ms}}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	add(1, 1000, "ranked", 20)
	add(2, 1050, "ranked", 20)  // possible
	add(3, 1150, "ranked", 20)  // too far until 10 s
	add(4, 1000, "ranked", 80)  // too slow until 10 s
	add(5, 1500, "ranked", 150) // both, until 30 s and beyond
	now := benchStart + 3_000
	m.Pass(now)
	before := m.Stats()
	e, ok := m.Explain(1, now)
	if !ok || e.Waited != 3 || e.Level != 0 || e.Needed != 10 || e.Others != 4 {
		t.Errorf("got %+v, want 3 s, level 0, 10 players needed, 4 others", e)
	}
	if e.Now.Possible != 1 || !slices.Equal(e.Now.Rejected, []Rejection{{0, 2}, {1, 2}}) {
		t.Errorf("now: got %+v, want 1 possible, Near and Ping rejecting 2 each", e.Now)
	}
	if len(e.Oldest) != 4 || e.Oldest[0].Key != 2 || !e.Oldest[0].Possible || !slices.Equal(e.Oldest[3].Rejected, []int{0, 1}) {
		t.Errorf("oldest: got %+v", e.Oldest)
	}
	if len(e.Steps) != 3 || e.Steps[0].At != benchStart+10_000 || !slices.Equal(e.Steps[0].Rules, []int{0, 1}) || e.Steps[0].Partners.Possible != 3 {
		t.Errorf("steps: got %+v, want the first at 10 s to relax both rules and to make 3 partners possible", e.Steps)
	}
	if m.Stats() != before {
		t.Errorf("stats: got %+v, want them unchanged: %+v", m.Stats(), before)
	}
	e, _ = m.Explain(5, now)
	if !slices.Equal(e.Alone, []int{1}) {
		t.Errorf("alone: got %v, want Ping", e.Alone)
	}
	if _, ok := m.Explain(6, now); ok {
		t.Error("explained a ticket that is not there")
	}
}

func TestExplainNamesRulesThatOnlyJudgeTheWhole(t *testing.T) {
	rules := mustParse(t, `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number"}],
"teams":[{"name":"a","minPlayers":1,"maxPlayers":1},{"name":"b","minPlayers":1,"maxPlayers":1}],
"rules":[{"name":"Mentor","type":"distance","measurements":"avg(teams[a].players.attributes[skill])","referenceValue":"avg(teams[b].players.attributes[skill])","minDistance":20}]}`)
	m := New(rules, Config{})
	for key := range uint64(2) {
		if err := m.Add(Ticket{Key: key, Start: benchStart, Players: []Player{{ID: fmt.Sprint(key), Attributes: []ruleset.NamedValue{number("skill", 5)}}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Add(Ticket{Key: 2, Start: benchStart, Players: []Player{{ID: "2"}}}); err != nil {
		t.Fatal(err)
	}
	m.Pass(benchStart)
	if e, _ := m.Explain(0, benchStart); e.Now.Possible != 1 || !slices.Equal(e.Together, []int{0}) {
		t.Errorf("got %+v, want one possible partner and Mentor against the match", e)
	}
	if e, _ := m.Explain(2, benchStart); e.Unmatchable == "" {
		t.Error("got nothing, want to hear of the missing skill")
	}
}
