package matcher

import (
	"fmt"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/domain"
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
	if e.Now.Possible != 1 || !slices.Equal(e.Now.Rejected, []Rejection{
		{0, 2, 3, "from 1150 to 1000 it is 150, want at most 100"}, {1, 2, 4, "no region was reported by all players with at most 60 ms"}}) {
		t.Errorf("now: got %+v, want 1 possible, Near and Ping rejecting 2 each", e.Now)
	}
	if len(e.Oldest) != 4 || e.Oldest[0].Key != 2 || !e.Oldest[0].Possible || !slices.Equal(rulesOf(e.Oldest[3].Rejected), []int{0, 1}) {
		t.Errorf("oldest: got %+v", e.Oldest)
	}
	if len(e.Steps) != 3 || e.Steps[0].At != benchStart+10_000 || !slices.Equal(e.Steps[0].Rules, []int{0, 1}) || e.Steps[0].Partners.Possible != 3 {
		t.Errorf("steps: got %+v, want the first at 10 s to relax both rules and to make 3 partners possible", e.Steps)
	}
	if m.Stats() != before {
		t.Errorf("stats: got %+v, want them unchanged: %+v", m.Stats(), before)
	}
	e, _ = m.Explain(5, now)
	if !slices.Equal(e.Alone, []Objection{{1, "no region was reported by all players with at most 60 ms"}}) {
		t.Errorf("alone: got %v, want Ping", e.Alone)
	}
	if _, ok := m.Explain(6, now); ok {
		t.Error("explained a ticket that is not in the pool")
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
	if e, _ := m.Explain(0, benchStart); e.Now.Possible != 1 || !slices.Equal(e.Together, []Objection{{0, "from 5 to 5 it is 0, want at least 20"}}) {
		t.Errorf("got %+v, want one possible partner and Mentor against the match", e)
	}
	if e, _ := m.Explain(2, benchStart); e.Unmatchable == "" {
		t.Error("got nothing, want the missing skill named")
	}
}

func rulesOf(objections []Objection) (rules []int) {
	for _, o := range objections {
		rules = append(rules, o.Rule)
	}
	return rules
}

// TestBackfillsWithoutHope: no newcomer at all can join these rosters.
func TestBackfillsWithoutHope(t *testing.T) {
	roster := func(red, blue int) (players []Player) {
		for i := range red + blue {
			team := "red"
			if i >= red {
				team = "blue"
			}
			players = append(players, Player{ID: fmt.Sprint(i), Team: team})
		}
		return players
	}
	const plain = `{"ruleLanguageVersion":"1.0","teams":[{"name":"red","minPlayers":5,"maxPlayers":5},{"name":"blue","minPlayers":5,"maxPlayers":5}]%s}`
	grows := fmt.Sprintf(plain, `,"expansions":[{"target":"teams[red].maxPlayers","steps":[{"waitTimeSeconds":10,"value":6}]}]`)
	for _, test := range []struct {
		body      string
		red, blue int
		free      int32
		want      string
	}{
		{fmt.Sprintf(plain, ""), 6, 3, -1, `its roster has 6 players on team "red", which takes 5`},
		{fmt.Sprintf(plain, ""), 5, 5, -1, "its roster has 10 players, and the teams take no more"},
		{fmt.Sprintf(plain, ""), 5, 3, 1, "its teams lack 2 players to their minimum, and its game session takes 1"},
		{fmt.Sprintf(plain, ""), 5, 3, 2, ""},
		{grows, 6, 3, -1, ""},
		{grows, 6, 5, -1, "its roster has 11 players, and the teams take no more"},
	} {
		m := New(mustParse(t, test.body), Config{})
		if err := m.Add(Ticket{Key: 1, Start: benchStart, Backfill: true, FreeSlots: test.free, Players: roster(test.red, test.blue)}); err != nil {
			t.Fatal(err)
		}
		for key := range uint64(3) {
			if err := m.Add(Ticket{Key: 10 + key, No: 10 + key, Start: benchStart, Players: []Player{{ID: fmt.Sprint("new", key)}}}); err != nil {
				t.Fatal(err)
			}
		}
		if e, _ := m.Explain(1, benchStart); e.Unmatchable != test.want {
			t.Errorf("%d and %d players, %d free slots: got %q, want %q", test.red, test.blue, test.free, e.Unmatchable, test.want)
		}
		var matches []Proposal
		for _, wait := range []domain.Time{0, 10_000} {
			matches = append(matches, m.Pass(benchStart+wait)...)
		}
		if got := len(matches) > 0; got != (test.want == "") {
			t.Errorf("%d and %d players, %d free slots: matches %v, want some only where there is hope", test.red, test.blue, test.free, matches)
		}
	}
}

func TestExplainSaysWhatItDidNotLookAt(t *testing.T) {
	m := New(mustParse(t, fmt.Sprintf(oneOnOne, "")), Config{})
	for key := range uint64(explainLooked + 5) {
		if err := m.Add(Ticket{Key: key, No: key, Start: benchStart, Players: []Player{{ID: fmt.Sprint(key), Attributes: []ruleset.NamedValue{number("skill", 1000*float64(key))}}}}); err != nil {
			t.Fatal(err)
		}
	}
	if e, _ := m.Explain(0, benchStart); e.Others != explainLooked+4 || e.Now.Looked != explainLooked || !e.Now.More {
		t.Errorf("got %+v of %d others, want %d looked at and more left", e.Now, e.Others, explainLooked)
	}
	if e, _ := m.ExplainEnd(0, benchStart); e.Now.Looked != explainEnded || !e.Now.More || e.Now.Rejected[0].Tickets != explainEnded {
		t.Errorf("got %+v, want a look at %d", e.Now, explainEnded)
	}
}
