package matcher

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// No match satisfies this rule set, and only a complete candidate shows it, so the search backtracks.
const hopelessRules = `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number","default":10}],
"teams":[{"name":"a","minPlayers":5,"maxPlayers":5},{"name":"b","minPlayers":5,"maxPlayers":5}],
"expansions":[{"target":"rules[Never].minDistance","steps":[{"waitTimeSeconds":10,"value":900000}]}],
"rules":[{"name":"Never","type":"distance","measurements":"avg(teams[a].players.attributes[skill])","referenceValue":"avg(teams[b].players.attributes[skill])","minDistance":1000000}]}`

func TestIdenticalTicketsAreTriedOnce(t *testing.T) {
	m := New(mustParse(t, hopelessRules), Config{})
	for key := range uint64(10_000) {
		if err := m.Add(Ticket{Key: key, Start: benchStart, No: key, Players: []Player{{ID: fmt.Sprint(key)}}}); err != nil {
			t.Fatal(err)
		}
	}
	m.Pass(benchStart)
	m.Pass(benchStart + 10_000)
	if s := m.Stats(); s.Searches > 4*(1+retries*restarts) || s.Waiting != 0 {
		t.Errorf("got %+v, want no search around the others, and nothing left to do", s)
	}
}

func TestHopelessRulesCostABudgetAndAPassItsWork(t *testing.T) {
	m := New(mustParse(t, hopelessRules), Config{Budget: 500, Work: 10_000})
	r := rand.New(rand.NewPCG(1, 1))
	for key := range uint64(300) {
		if err := m.Add(skilled(r, key, benchStart)); err != nil {
			t.Fatal(err)
		}
	}
	passes := 0
	for m.Dirty() {
		before := m.Stats().Steps
		m.Pass(benchStart)
		// A pass finishes the search that it has begun, and one with the full budget before; each may use its whole budget.
		if steps := m.Stats().Steps - before; steps > 10_000+2*(20*500+1000) {
			t.Fatalf("a pass of %d steps, want little more than 10,000", steps)
		}
		if passes++; passes > 2000 {
			t.Fatal("passes do not come to an end")
		}
	}
	if s := m.Stats(); s.CutShort == 0 || s.Exhausted < 100 || s.Proposals != 0 {
		t.Errorf("got %+v, want passes cut short and searches exhausted", s)
	}
}

func TestNothingIsSearchedTwice(t *testing.T) {
	m := New(mustParse(t, fmt.Sprintf(oneOnOne, "")), Config{})
	r := rand.New(rand.NewPCG(1, 1))
	for key := range uint64(500) {
		ticket := skilled(r, key, benchStart)
		ticket.Players[0].Attributes[0] = number("skill", float64(key)*1000)
		if err := m.Add(ticket); err != nil {
			t.Fatal(err)
		}
	}
	m.Pass(benchStart)
	before := m.Stats().Searches
	for at := range 10 {
		m.Pass(benchStart + 1000)
		if at == 5 {
			if err := m.Add(Ticket{Key: 1000, Start: benchStart, Players: []Player{{ID: "new", Attributes: []ruleset.NamedValue{number("skill", 1e9)}}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := m.Stats().Searches - before; got != 1 {
		t.Errorf("%d searches, want the new ticket's only", got)
	}
}

func TestSameTicketsGiveTheSameProposals(t *testing.T) {
	play := func() (all []Proposal) {
		m := New(mustParse(t, fiveOnFive), Config{Name: "same", Work: 5000})
		for _, ticket := range drawTickets(3000, travelled) {
			if err := m.Add(ticket); err != nil {
				t.Fatal(err)
			}
		}
		for at := range 40 {
			all = append(all, m.Pass(benchStart+domain.Time(1000*at))...)
		}
		return all
	}
	first := play()
	if len(first) < 100 {
		t.Fatalf("%d proposals, want many", len(first))
	}
	for range 3 {
		if again := play(); !reflect.DeepEqual(first, again) {
			t.Fatal("other proposals of the same tickets")
		}
	}
}

func TestAddRefuses(t *testing.T) {
	m := New(mustParse(t, fiveOnFive), Config{})
	ok := Ticket{Key: 1, Start: benchStart, Players: []Player{{ID: "ann"}}}
	if err := m.Add(ok); err != nil {
		t.Fatal(err)
	}
	for want, ticket := range map[string]Ticket{
		"in the pool already": ok,
		"no players":          {Key: 2},
		`attribute "skill"`:   {Key: 3, Players: []Player{{ID: "bob", Attributes: []ruleset.NamedValue{text("skill", "high")}}}},
		`team "green"`:        {Key: 4, Backfill: true, Players: []Player{{ID: "cyd", Team: "green"}}},
	} {
		if err := m.Add(ticket); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to contain %s", err, want)
		}
	}
	if m.Len() != 1 {
		t.Errorf("%d tickets, want none of the refused ones", m.Len())
	}
}

// TestManyStepsDoNotMakeTicketsLarge: an expansion of a thousand steps does not give each ticket a thousand features.
func TestManyStepsDoNotMakeTicketsLarge(t *testing.T) {
	var steps []string
	for i := range 1000 {
		steps = append(steps, fmt.Sprintf(`{"waitTimeSeconds":%d,"value":%d}`, i+1, 20+i))
	}
	m := New(mustParse(t, `{"ruleLanguageVersion":"1.0","teams":[{"name":"a","minPlayers":2,"maxPlayers":2}],"rules":[{"name":"Ping","type":"latency","maxLatency":10}],
"expansions":[{"target":"rules[Ping].maxLatency","steps":[`+strings.Join(steps, ",")+`]}]}`), Config{})
	if m.plan.words > 2*maxVariants {
		t.Errorf("%d words for each ticket, want few", m.plan.words)
	}
	for key := range uint64(2) {
		if err := m.Add(Ticket{Key: key, Start: benchStart, Players: []Player{{ID: fmt.Sprint(key), Latencies: []Latency{{"east", 500}}}}}); err != nil {
			t.Fatal(err)
		}
	}
	for at := range 600 {
		if got, want := len(m.Pass(benchStart+domain.Time(1000*at))), 0; at < 481 && got != want {
			t.Fatalf("a match at %d s, want none before 481 s, when the limit is 500", at)
		} else if at == 481 && got != 1 {
			t.Fatal("no match at 481 s, when the limit is 500")
		}
	}
}

// TestHardTicketsDoNotHoldUpOthers: thousands of anchors that exhaust every budget wait when two tickets arrive that match at once.
func TestHardTicketsDoNotHoldUpOthers(t *testing.T) {
	m := New(mustParse(t, hopelessOrEasy), Config{Work: 100_000})
	r := rand.New(rand.NewPCG(1, 1))
	for key := range uint64(2000) {
		if err := m.Add(skilled(r, key, benchStart)); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 { // into the round of quick searches
		m.Pass(benchStart)
	}
	if !m.Dirty() {
		t.Fatal("nothing is left to do, want it to take longer")
	}
	for key := range uint64(2) {
		ticket := skilled(r, 5000+key, benchStart+1)
		ticket.Players[0].Attributes[0] = number("skill", 1e7+2e6*float64(key))
		if err := m.Add(ticket); err != nil {
			t.Fatal(err)
		}
	}
	for pass := range 10 {
		if len(m.Pass(benchStart+1)) > 0 {
			return
		}
		if pass == 9 {
			t.Errorf("no match in ten passes: %+v", m.Stats())
		}
	}
}

// hopelessOrEasy is for pairs whose skills are a million apart, which no real skills are.
const hopelessOrEasy = `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number","default":10}],
"teams":[{"name":"a","minPlayers":1,"maxPlayers":5},{"name":"b","minPlayers":1,"maxPlayers":5}],
"rules":[{"name":"Apart","type":"distance","measurements":"avg(teams[a].players.attributes[skill])","referenceValue":"avg(teams[b].players.attributes[skill])","minDistance":1000000}]}`
