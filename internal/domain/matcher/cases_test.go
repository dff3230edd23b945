package matcher

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// These are the documented cases of building matches. Those of acceptance, placement and stopping need the core.

type testCase struct {
	Name        string
	RuleSet     json.RawMessage
	RuleSetText string
	Config      struct {
		RequestTimeoutSeconds int64
		AdditionalPlayerCount int32
		AcceptanceRequired    bool
		Placements            []json.RawMessage
	}
	Tickets         []caseTicket
	Actions         []json.RawMessage
	RunUntilSeconds int64
	Expect          caseExpect
}

type caseTicket struct {
	ID             string
	ArrivalSeconds int64
	Kind           string
	GameSession    string
	Players        []casePlayer
}

type casePlayer struct {
	ID         string
	Attributes map[string]any
	LatencyMs  map[string]int32
	Team       string
}

type caseExpect struct {
	Valid   *bool
	Matches []struct {
		Tickets             []string
		NotBefore, NotAfter int64
		Teams               map[string][]string
	}
	MatchCount    any
	NoMatchBefore int64
	Unmatched     []string
	Matched       []struct {
		Ticket              string
		Tickets             []string
		NotBefore, NotAfter int64
	}
	Together   [][]string
	Apart      [][]string
	PlayerTeam map[string]any
	SameTeam   [][]string
	EachMatch  []caseConstraint
	Rejected   []json.RawMessage
}

type caseConstraint struct {
	Kind, Team, Attribute, Per, WhereTicket string
	Value                                   any
	Min, Max, MaxLatency                    *float64
}

// caseMatch is a proposal with names.
type caseMatch struct {
	at      int64
	tickets []string
	teams   map[string][]string // player ids
}

func TestCases(t *testing.T) {
	files, err := filepath.Glob("../ruleset/testdata/cases/*.json")
	if err != nil || len(files) < 90 {
		t.Fatalf("got %d case files, %v, want all", len(files), err)
	}
	ran := 0
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c testCase
		if err := json.Unmarshal(body, &c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(c.Tickets) == 0 || len(c.Actions) > 0 || len(c.Config.Placements) > 0 || c.Config.AcceptanceRequired || len(c.Expect.Rejected) > 0 {
			continue
		}
		ran++
		t.Run(c.Name, func(t *testing.T) {
			for seed := range 3 {
				runCase(t, &c, fmt.Sprint("seed", seed))
			}
		})
	}
	if ran < 50 {
		t.Errorf("ran %d cases, want the more than 50 that need no acceptance", ran)
	}
}

func mustParse(t testing.TB, body string) *ruleset.RuleSet {
	t.Helper()
	rules, problems := ruleset.Parse(body)
	if len(problems) > 0 {
		t.Fatalf("rule set %s: %v", body, problems)
	}
	return rules
}

func runCase(t *testing.T, c *testCase, name string) {
	rules := mustParse(t, string(c.RuleSet))
	m := New(rules, Config{Name: name, AdditionalPlayers: c.Config.AdditionalPlayerCount})
	timeout := c.Config.RequestTimeoutSeconds
	if timeout == 0 {
		timeout = 600
	}
	const second = 1000
	start := domain.Time(1_700_000_000_000)
	var matches []caseMatch
	for at := int64(0); at <= c.RunUntilSeconds; at++ {
		now := start + domain.Time(at*second)
		for i := range c.Tickets {
			if c.Tickets[i].ArrivalSeconds != at {
				continue
			}
			for k := range i { // a newer request replaces the older ones of its players, and of its game session
				if replaces(&c.Tickets[i], &c.Tickets[k]) {
					m.Remove(uint64(k))
				}
			}
			if err := m.Add(caseTicketOf(rules, &c.Tickets[i], uint64(i), now)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range c.Tickets {
			if c.Tickets[i].ArrivalSeconds+timeout == at {
				m.Remove(uint64(i))
			}
		}
		// A runner calls Pass only when there is something to do.
		due, ok := m.Due(now - 1)
		for m.Dirty() || ok && due <= now {
			for _, p := range m.Pass(now) {
				checkLegal(t, rules, c, &p, now)
				matches = append(matches, matchOf(rules, c, &p, at))
			}
			ok = false
		}
	}
	c.Expect.check(t, c, rules, matches)
}

func replaces(newer, older *caseTicket) bool {
	if older.ArrivalSeconds > newer.ArrivalSeconds {
		return false
	}
	if newer.Kind == "backfill" && older.Kind == "backfill" && newer.GameSession == older.GameSession {
		return true
	}
	for _, p := range newer.Players {
		if slices.ContainsFunc(older.Players, func(q casePlayer) bool { return q.ID == p.ID }) {
			return true
		}
	}
	return false
}

func caseTicketOf(rules *ruleset.RuleSet, c *caseTicket, key uint64, now domain.Time) Ticket {
	t := Ticket{Key: key, Start: now, No: key, Backfill: c.Kind == "backfill", FreeSlots: -1}
	for i := range c.Players {
		p := Player{ID: c.Players[i].ID, Team: c.Players[i].Team}
		for _, name := range slices.Sorted(maps.Keys(c.Players[i].Attributes)) {
			p.Attributes = append(p.Attributes, ruleset.NamedValue{Name: name, Value: valueOf(c.Players[i].Attributes[name])})
		}
		for _, region := range slices.Sorted(maps.Keys(c.Players[i].LatencyMs)) {
			p.Latencies = append(p.Latencies, Latency{region, c.Players[i].LatencyMs[region]})
		}
		t.Players = append(t.Players, p)
	}
	return t
}

func valueOf(x any) ruleset.Value {
	switch x := x.(type) {
	case string:
		return ruleset.Value{Kind: ruleset.String, Text: x}
	case float64:
		return ruleset.Value{Kind: ruleset.Number, Number: x}
	case []any:
		v := ruleset.Value{Kind: ruleset.List}
		for _, s := range x {
			v.List = append(v.List, s.(string))
		}
		return v
	case map[string]any:
		v := ruleset.Value{Kind: ruleset.Map}
		for _, key := range slices.Sorted(maps.Keys(x)) {
			v.Map = append(v.Map, ruleset.Entry{Key: key, Number: x[key].(float64)})
		}
		return v
	}
	panic(fmt.Sprintf("a case with an attribute %v", x))
}

func matchOf(rules *ruleset.RuleSet, c *testCase, p *Proposal, at int64) caseMatch {
	m := caseMatch{at: at, teams: map[string][]string{}}
	for _, key := range p.Tickets {
		m.tickets = append(m.tickets, c.Tickets[key].ID)
	}
	for team, seats := range p.Teams {
		for _, s := range seats {
			m.teams[rules.Teams[team].Name] = append(m.teams[rules.Teams[team].Name], c.Tickets[p.Tickets[s.Ticket]].Players[s.Player].ID)
		}
	}
	return m
}

// checkLegal checks a proposal with the reference evaluator.
func checkLegal(t *testing.T, rules *ruleset.RuleSet, c *testCase, p *Proposal, now domain.Time) {
	t.Helper()
	tickets := map[uint64]Ticket{}
	for _, key := range p.Tickets {
		tickets[key] = caseTicketOf(rules, &c.Tickets[key], key, domain.Time(1_700_000_000_000+c.Tickets[key].ArrivalSeconds*1000))
	}
	if wrong := illegal(rules, tickets, p, now, c.Config.AdditionalPlayerCount); wrong != "" {
		t.Errorf("proposal %+v: %s", *p, wrong)
	}
}

func (e *caseExpect) check(t *testing.T, c *testCase, rules *ruleset.RuleSet, matches []caseMatch) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf(format+"\nmatches: %v", append(args, matches)...)
	}
	with := func(ticket string) (found []caseMatch) {
		for _, m := range matches {
			if slices.Contains(m.tickets, ticket) {
				found = append(found, m)
			}
		}
		return found
	}
	used := make([]bool, len(matches))
	for _, want := range e.Matches {
		at := slices.IndexFunc(matches, func(m caseMatch) bool {
			return sameSet(m.tickets, want.Tickets) && want.NotBefore <= m.at && m.at <= want.NotAfter
		})
		if at < 0 || used[at] {
			fail("no match of %v from %d to %d", want.Tickets, want.NotBefore, want.NotAfter)
			continue
		}
		used[at] = true
		for team, players := range want.Teams {
			if !sameSet(matches[at].teams[team], players) {
				fail("team %s of %v: want %v", team, want.Tickets, players)
			}
		}
	}
	switch n := e.MatchCount.(type) {
	case float64:
		if len(matches) != int(n) {
			fail("%d matches, want %v", len(matches), n)
		}
	case map[string]any:
		if float64(len(matches)) < n["min"].(float64) || float64(len(matches)) > n["max"].(float64) {
			fail("%d matches, want %v", len(matches), n)
		}
	}
	for _, m := range matches {
		if m.at < e.NoMatchBefore {
			fail("a match at %d, want none before %d", m.at, e.NoMatchBefore)
		}
	}
	for _, ticket := range e.Unmatched {
		if len(with(ticket)) > 0 {
			fail("%s is matched", ticket)
		}
	}
	for _, want := range e.Matched {
		tickets := want.Tickets
		if want.Ticket != "" {
			tickets = append(tickets, want.Ticket)
		}
		for _, ticket := range tickets {
			if !slices.ContainsFunc(with(ticket), func(m caseMatch) bool { return want.NotBefore <= m.at && m.at <= want.NotAfter }) {
				fail("%s is not matched from %d to %d", ticket, want.NotBefore, want.NotAfter)
			}
		}
	}
	for _, group := range e.Together {
		if !slices.ContainsFunc(matches, func(m caseMatch) bool { return containsAll(m.tickets, group) }) {
			fail("no match has all of %v", group)
		}
	}
	for _, group := range e.Apart {
		for _, m := range matches {
			if count(m.tickets, group) > 1 {
				fail("a match has two of %v", group)
			}
		}
	}
	e.checkTeams(fail, matches)
	for _, k := range e.EachMatch {
		for _, m := range matches {
			if k.WhereTicket == "" || slices.Contains(m.tickets, k.WhereTicket) {
				if wrong := k.check(c, rules, &m); wrong != "" {
					fail("%s %s%s: %s", k.Kind, k.Team, k.Attribute, wrong)
				}
			}
		}
	}
}

func (e *caseExpect) checkTeams(fail func(string, ...any), matches []caseMatch) {
	teamOf := func(m *caseMatch, player string) string {
		for team, players := range m.teams {
			if slices.Contains(players, player) {
				return team
			}
		}
		return ""
	}
	for player, allowed := range e.PlayerTeam {
		names := []any{allowed}
		if list, ok := allowed.([]any); ok {
			names = list
		}
		seen := false
		for _, m := range matches {
			if team := teamOf(&m, player); team != "" {
				seen = true
				if !slices.Contains(names, any(team)) {
					fail("%s is on %s, want %v", player, team, allowed)
				}
			}
		}
		if !seen {
			fail("%s is in no match", player)
		}
	}
	for _, group := range e.SameTeam {
		for _, m := range matches {
			teams := map[string]bool{}
			for _, player := range group {
				teams[teamOf(&m, player)] = true
			}
			if len(teams) > 1 {
				fail("%v are not on one team", group)
			}
		}
	}
}

func (k *caseConstraint) check(c *testCase, rules *ruleset.RuleSet, m *caseMatch) string {
	within := func(x float64) string {
		if k.Min != nil && x < *k.Min-1e-9 || k.Max != nil && x > *k.Max+1e-9 {
			return fmt.Sprintf("got %v", x)
		}
		return ""
	}
	players := map[string]casePlayer{}
	for _, ticket := range c.Tickets {
		if slices.Contains(m.tickets, ticket.ID) {
			for _, p := range ticket.Players {
				players[p.ID] = p
			}
		}
	}
	value := func(id string) any {
		if v, ok := players[id].Attributes[k.Attribute]; ok {
			return v
		}
		column, _ := rules.Column(k.Attribute)
		if d := rules.Attributes[column].Default; d.Kind == ruleset.Number {
			return d.Number
		} else if d.Kind == ruleset.String {
			return d.Text
		}
		return nil
	}
	var means, sums, all []float64
	for _, team := range rules.Teams {
		var own []float64
		for _, id := range m.teams[team.Name] {
			if k.Attribute == "" {
				continue
			}
			if x, ok := value(id).(float64); ok {
				own = append(own, x)
			}
		}
		if len(own) > 0 {
			sum := 0.0
			for _, x := range own {
				sum += x
			}
			sums, means, all = append(sums, sum), append(means, sum/float64(len(own))), append(all, own...)
		}
	}
	ids := slices.Sorted(maps.Keys(players))
	switch k.Kind {
	case "teamSize":
		for _, team := range rules.Teams {
			if k.Team == "*" || k.Team == team.Name || k.Team == team.Definition {
				if wrong := within(float64(len(m.teams[team.Name]))); wrong != "" {
					return team.Name + ": " + wrong
				}
			}
		}
	case "playerCount":
		return within(float64(len(players)))
	case "teamMeanSpread":
		return within(slices.Max(means) - slices.Min(means))
	case "teamSumSpread":
		return within(slices.Max(sums) - slices.Min(sums))
	case "teamMeanFromMatchMean":
		total := 0.0
		for _, x := range all {
			total += x
		}
		for _, mean := range means {
			if wrong := within(math.Abs(mean - total/float64(len(all)))); wrong != "" {
				return wrong
			}
		}
	case "allEqual":
		for _, id := range ids {
			if value(id) != value(ids[0]) {
				return fmt.Sprint(value(id), " and ", value(ids[0]))
			}
		}
	case "commonValues":
		common := 0
		for _, s := range value(ids[0]).([]any) {
			if !slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(value(id).([]any), s) }) {
				common++
			}
		}
		return within(float64(common))
	case "countWithValue":
		groups := [][]string{ids}
		if k.Per == "team" {
			groups = slices.Collect(maps.Values(m.teams))
		}
		for _, group := range groups {
			n := 0
			for _, id := range group {
				list, isList := value(id).([]any)
				if isList && slices.Contains(list, k.Value) || !isList && value(id) == k.Value {
					n++
				}
			}
			if wrong := within(float64(n)); wrong != "" {
				return wrong
			}
		}
	case "commonRegion":
		for region := range players[ids[0]].LatencyMs {
			if !slices.ContainsFunc(ids, func(id string) bool {
				ms, ok := players[id].LatencyMs[region]
				return !ok || float64(ms) > *k.MaxLatency
			}) {
				return ""
			}
		}
		return "no region"
	default:
		return "a constraint that the test does not know"
	}
	return ""
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func containsAll(all, some []string) bool { return count(all, some) == len(some) }

func count(all, some []string) (n int) {
	for _, s := range some {
		if slices.Contains(all, s) {
			n++
		}
	}
	return n
}

func (m caseMatch) String() string {
	return fmt.Sprintf("at %d: %s %v", m.at, strings.Join(m.tickets, " "), m.teams)
}
