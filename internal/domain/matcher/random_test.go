package matcher

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// These tests use random rule sets and pools that are small enough for a brute-force search.

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// randomRules draws a rule set over the attributes skill, mode, role, modes, blocked and weights.
func randomRules(r *rand.Rand) string {
	var teams []string
	n := 1 + r.IntN(3)
	for i := range n {
		least := r.IntN(3)
		most := max(1, least+r.IntN(3))
		teams = append(teams, fmt.Sprintf(`{"name":"t%d","minPlayers":%d,"maxPlayers":%d}`, i, least, most))
	}
	if r.IntN(5) == 0 {
		teams = []string{`{"name":"t0","minPlayers":1,"maxPlayers":2,"quantity":2}`}
	}
	team := func() string { return pick(r, "*", "*", "*", "t0") }
	var rules []string
	add := func(kind, rest string) {
		rules = append(rules, fmt.Sprintf(`{"name":"r%d","type":"%s",%s}`, len(rules), kind, rest))
	}
	for range r.IntN(4) {
		t := team()
		flat := fmt.Sprintf("flatten(teams[%s].players.attributes[%%s])", t)
		if t != "*" && (n > 1 || len(teams) == n) && !strings.Contains(teams[0], "quantity") {
			flat = fmt.Sprintf("teams[%s].players.attributes[%%s]", t)
		}
		of := func(attribute string) string { return fmt.Sprintf(flat, attribute) }
		switch r.IntN(14) {
		case 0, 1:
			add("distance", fmt.Sprintf(`"measurements":"max(%s)","referenceValue":"min(%s)","maxDistance":%d`, of("skill"), of("skill"), r.IntN(30)))
		case 2:
			add("comparison", fmt.Sprintf(`"measurements":"%s","operation":"%s"`, of("mode"), pick(r, "=", "!=")))
		case 3:
			add("comparison", fmt.Sprintf(`"measurements":"%s","operation":"%s","referenceValue":%d`, of("skill"), pick(r, "<", "<=", ">", ">=", "=", "!="), r.IntN(40)))
		case 4:
			add("comparison", fmt.Sprintf(`"measurements":"%s","operation":"%s","referenceValue":"%s"`, of("role"), pick(r, "=", "!="), pick(r, "tank", "healer")))
		case 5:
			add("distance", fmt.Sprintf(`"measurements":"avg(teams[*].players.attributes[skill])","referenceValue":"avg(flatten(teams[*].players.attributes[skill]))","maxDistance":%d`, r.IntN(15)))
		case 6:
			add("collection", fmt.Sprintf(`"operation":"intersection","measurements":"%s","minCount":%d`, of("modes"), r.IntN(2)+1))
		case 7:
			add("collection", fmt.Sprintf(`"operation":"contains","measurements":"%s","referenceValue":"tank",%s`, of("role"), pick(r, `"minCount":1`, `"maxCount":1`, `"minCount":1,"maxCount":2`)))
		case 8:
			add("collection", `"operation":"reference_intersection_count","measurements":"flatten(teams[*].players.attributes[blocked])","referenceValue":"flatten(teams[*].players[playerId])","maxCount":0`)
		case 9:
			add("latency", pick(r, `"maxLatency":100`, `"maxLatency":60`, `"maxLatency":120,"maxDistance":30`, `"maxDistance":20,"distanceReference":"min"`))
		case 10:
			add("batchDistance", fmt.Sprintf(`"batchAttribute":"skill","maxDistance":%d,"partyAggregation":"%s"`, r.IntN(30), pick(r, "avg", "min", "max")))
		case 11:
			add("batchDistance", `"batchAttribute":"mode"`)
		case 12:
			add(pick(r, "absoluteSort", "distanceSort"), fmt.Sprintf(`"sortDirection":"%s",%s`, pick(r, "ascending", "descending"),
				pick(r, `"sortAttribute":"skill"`, `"sortAttribute":"weights","mapKey":"maxValue"`)))
		case 13:
			add("collection", `"operation":"reference_intersection_count","measurements":"flatten(teams[*].players.attributes[modes])","referenceValue":"set_intersection(flatten(teams[*].players.attributes[modes]))","minCount":1`)
		}
	}
	var parts []int
	for i, rule := range rules {
		if !strings.Contains(rule, "batchDistance") && !strings.Contains(rule, "Sort") {
			parts = append(parts, i)
		}
	}
	if len(parts) > 1 && r.IntN(2) == 0 {
		add("compound", fmt.Sprintf(`"statement":"%s(r%d, r%d)"`, pick(r, "and", "or", "or", "xor"), parts[0], parts[1]))
	}
	var expansions []string
	for i, rule := range rules {
		if strings.Contains(rule, `"maxDistance"`) && r.IntN(2) == 0 {
			expansions = append(expansions, fmt.Sprintf(`{"target":"rules[r%d].maxDistance","steps":[{"waitTimeSeconds":%d,"value":%d},{"waitTimeSeconds":20,"value":%d}]}`, i, 5+r.IntN(3), r.IntN(40), 20+r.IntN(40)))
		}
	}
	if r.IntN(3) == 0 {
		expansions = append(expansions, `{"target":"teams[t0].minPlayers","steps":[{"waitTimeSeconds":10,"value":0}]}`)
	}
	algorithm := fmt.Sprintf(`"strategy":"exhaustiveSearch","backfillPriority":"%s","expansionAgeSelection":"%s"`, pick(r, "normal", "high", "low"), pick(r, "newest", "newest", "oldest"))
	if r.IntN(5) == 0 {
		algorithm = fmt.Sprintf(`"strategy":"balanced","balancedAttribute":"skill","expansionAgeSelection":"%s"`, pick(r, "newest", "oldest"))
	}
	return fmt.Sprintf(`{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number","default":10},{"name":"mode","type":"string","default":"a"},
{"name":"role","type":"string","default":"tank"},{"name":"modes","type":"string_list","default":["x"]},{"name":"blocked","type":"string_list","default":[]},
{"name":"weights","type":"string_number_map","default":{"x":1}}],"algorithm":{%s},"teams":[%s],"rules":[%s],"expansions":[%s]}`,
		algorithm, strings.Join(teams, ","), strings.Join(rules, ","), strings.Join(expansions, ","))
}

func randomTicket(r *rand.Rand, rules *ruleset.RuleSet, key uint64, now domain.Time) Ticket {
	t := Ticket{Key: key, Start: now - domain.Time(r.IntN(25)*1000), No: key, FreeSlots: -1}
	players := pick(r, 1, 1, 1, 2, 2, 3)
	t.Backfill = r.IntN(6) == 0
	if t.Backfill {
		t.FreeSlots = int32(r.IntN(4) - 1)
	}
	for i := range players {
		p := Player{ID: fmt.Sprintf("p%d.%d", key, i)}
		if t.Backfill {
			p.Team = rules.Teams[r.IntN(len(rules.Teams))].Name
		}
		set := func(name string, v ruleset.Value) {
			if r.IntN(10) > 0 {
				p.Attributes = append(p.Attributes, ruleset.NamedValue{Name: name, Value: v})
			}
		}
		set("skill", ruleset.Value{Kind: ruleset.Number, Number: float64(r.IntN(40))})
		set("mode", ruleset.Value{Kind: ruleset.String, Text: pick(r, "a", "a", "b")})
		set("role", ruleset.Value{Kind: ruleset.String, Text: pick(r, "tank", "healer", "dps")})
		set("modes", ruleset.Value{Kind: ruleset.List, List: pick(r, []string{"x"}, []string{"x", "y"}, []string{"y", "z"}, []string{"x", "y", "z"})})
		set("blocked", ruleset.Value{Kind: ruleset.List, List: pick(r, []string{}, []string{}, []string{fmt.Sprintf("p%d.0", r.IntN(8))})})
		set("weights", ruleset.Value{Kind: ruleset.Map, Map: []ruleset.Entry{{Key: "x", Number: float64(r.IntN(9))}, {Key: "y", Number: float64(r.IntN(9))}}})
		for _, region := range []string{"east", "mid", "west"} {
			if r.IntN(4) > 0 {
				p.Latencies = append(p.Latencies, Latency{region, int32(10 + r.IntN(120))})
			}
		}
		t.Players = append(t.Players, p)
	}
	return t
}

func TestProposalsAreLegalAndNoneIsMissed(t *testing.T) {
	runs := 1500
	if testing.Short() {
		runs = 300
	}
	proposals, left := 0, 0
	for seed := range uint64(runs) {
		p, l := playRandom(t, seed, 7)
		proposals, left = proposals+p, left+l
		if t.Failed() {
			return
		}
	}
	t.Logf("%d proposals; %d tickets left that no match exists of", proposals, left)
	if proposals < runs/4 || left < runs/4 {
		t.Errorf("%d proposals and %d tickets left: the worlds are too easy or too hard", proposals, left)
	}
}

// playRandom adds tickets in two steps and advances time to every wait time. When the matcher has no work left, brute force must not find
// a match, either.
func playRandom(t *testing.T, seed uint64, tickets int) (proposals, left int) {
	r := rand.New(rand.NewPCG(seed, 1))
	body := randomRules(r)
	rules, problems := ruleset.Parse(body)
	if len(problems) > 0 {
		return 0, 0 // such as an invalid expansion
	}
	additional := int32(0)
	if r.IntN(6) == 0 {
		additional = 1
	}
	now := domain.Time(1_700_000_000_000)
	m := New(rules, Config{Name: "random", AdditionalPlayers: additional, Budget: 1_000_000})
	if r.IntN(3) > 0 {
		m.exact = 0 // search only around changes, as in a large pool
	}
	pool := map[uint64]Ticket{}
	for step := range 5 {
		if step < 3 {
			for range 1 + r.IntN(tickets/2) {
				ticket := randomTicket(r, rules, uint64(len(pool)+100*step), now)
				if err := m.Add(ticket); err != nil {
					t.Fatal(err)
				}
				pool[ticket.Key] = ticket
			}
		}
		for _, p := range m.Pass(now) {
			proposals++
			if wrong := illegal(rules, pool, &p, now, additional); wrong != "" {
				t.Fatalf("seed %d: proposal %+v: %s\nrules %s\ntickets %+v", seed, p, wrong, body, pool)
			}
			for _, key := range p.Tickets {
				if _, ok := pool[key]; !ok {
					t.Fatalf("seed %d: ticket %d is proposed twice", seed, key)
				}
				delete(pool, key)
			}
		}
		if m.Dirty() {
			t.Fatalf("seed %d: a pass with enough work left something", seed)
		}
		if m.Len() != len(pool) {
			t.Fatalf("seed %d: %d tickets in the pool, want %d", seed, m.Len(), len(pool))
		}
		if match := bruteForce(rules, pool, now, additional); match != nil {
			t.Fatalf("seed %d: missed %v\nrules %s\ntickets %+v", seed, match, body, pool)
		}
		at, ok := m.Due(now)
		if !ok {
			at = now + 1000
		}
		now = at
	}
	return proposals, len(pool)
}

// bruteForce returns the tickets of some legal match, or nil if there is none.
func bruteForce(rules *ruleset.RuleSet, pool map[uint64]Ticket, now domain.Time, additional int32) (names []string) {
	everyMatch(rules, pool, now, additional, func(tickets []Ticket) bool {
		for _, t := range tickets {
			names = append(names, fmt.Sprint(t.Key))
		}
		return true
	})
	return names
}

// everyMatch calls f for every legal match until it returns true.
func everyMatch(rules *ruleset.RuleSet, pool map[uint64]Ticket, now domain.Time, additional int32, f func([]Ticket) bool) {
	var all []Ticket
	for key := range uint64(1000) {
		if t, ok := pool[key]; ok {
			all = append(all, t)
		}
	}
	teams := make([][]ruleset.Player, len(rules.Teams))
	var chosen []Ticket
	var try func(i int) bool
	try = func(i int) bool {
		if i == len(all) {
			return legalSet(rules, chosen, teams, now, additional) && f(chosen)
		}
		if try(i + 1) {
			return true
		}
		t := all[i]
		for team := range rules.Teams {
			saved := make([][]ruleset.Player, len(teams))
			copy(saved, teams)
			for _, p := range t.Players {
				values, _ := rules.Player(p.Attributes)
				var latencies []ruleset.RegionLatency
				for _, l := range p.Latencies {
					latencies = append(latencies, ruleset.RegionLatency{Region: l.Region, Milliseconds: l.Milliseconds})
				}
				to := team
				if t.Backfill {
					for at := range rules.Teams {
						if rules.Teams[at].Name == p.Team {
							to = at
						}
					}
				}
				teams[to] = append(teams[to][:len(teams[to]):len(teams[to])], ruleset.Player{ID: p.ID, Ticket: int(t.Key), Values: values, Latencies: latencies})
			}
			fits := true
			for at := range teams {
				fits = fits && int32(len(teams[at])) <= rules.PartyMax
			}
			chosen = append(chosen, t)
			if fits && try(i+1) {
				return true
			}
			chosen = chosen[:len(chosen)-1]
			copy(teams, saved)
			if t.Backfill {
				break
			}
		}
		return false
	}
	try(0)
}

func legalSet(rules *ruleset.RuleSet, chosen []Ticket, teams [][]ruleset.Player, now domain.Time, additional int32) bool {
	if len(chosen) == 0 {
		return false
	}
	backfills, total, newcomers, free := 0, int32(0), int32(0), int32(-1)
	youngest, oldest := chosen[0].Start, chosen[0].Start
	for _, t := range chosen {
		youngest, oldest = max(youngest, t.Start), min(oldest, t.Start)
		total += int32(len(t.Players))
		if t.Backfill {
			backfills++
			free = t.FreeSlots
		} else {
			newcomers += int32(len(t.Players))
		}
	}
	if backfills > 1 || newcomers == 0 || free >= 0 && newcomers > free {
		return false
	}
	start := youngest
	if rules.Algorithm.OldestAge {
		start = oldest
	}
	l := rules.Level(rules.LevelAt(age(start, now)))
	if backfills == 0 && total > l.Slots-additional {
		return false
	}
	return l.Accepts(&ruleset.Candidate{Teams: teams})
}

// TestOldestDecidesAndFullerIsBetter: in a small pool the first match is one of the oldest ticket that has any, with as many players as
// any of its matches. Of these it is nearly always the one whose tickets come first, except where parties would have to change teams for
// it, because the search takes the first full match.
func TestOldestDecidesAndFullerIsBetter(t *testing.T) {
	looked, later := 0, 0
	for seed := range uint64(1200) {
		r := rand.New(rand.NewPCG(seed, 21))
		body := randomRules(r)
		rules, problems := ruleset.Parse(body)
		if len(problems) > 0 || rules.Algorithm.BackfillPriority != ruleset.Normal || strings.Contains(body, "Sort") {
			continue
		}
		m := New(rules, Config{Name: "random", Budget: 1_000_000})
		pool := map[uint64]Ticket{}
		var order []Ticket
		for key := range uint64(6) {
			ticket := randomTicket(r, rules, key, benchStart)
			pool[key] = ticket
			order = append(order, ticket)
			if err := m.Add(ticket); err != nil {
				t.Fatal(err)
			}
		}
		slices.SortFunc(order, func(a, b Ticket) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.No, b.No)) })
		positions := func(tickets []Ticket) (list []int) {
			for i, ticket := range order {
				if slices.ContainsFunc(tickets, func(other Ticket) bool { return other.Key == ticket.Key }) {
					list = append(list, i)
				}
			}
			return list
		}
		var best []int
		bestPlayers := 0
		everyMatch(rules, pool, benchStart, 0, func(tickets []Ticket) bool {
			list, players := positions(tickets), 0
			for _, ticket := range tickets {
				players += len(ticket.Players)
			}
			if best == nil || list[0] < best[0] || list[0] == best[0] && (players > bestPlayers || players == bestPlayers && slices.Compare(list, best) < 0) {
				best, bestPlayers = list, players
			}
			return false
		})
		proposals := m.Pass(benchStart)
		if best == nil || len(proposals) == 0 {
			if best != nil || len(proposals) > 0 {
				t.Fatalf("seed %d: got %v, want %v", seed, proposals, best)
			}
			continue
		}
		looked++
		var first []Ticket
		for _, key := range proposals[0].Tickets {
			first = append(first, pool[key])
		}
		got := positions(first)
		if got[0] != best[0] || int(proposals[0].Players) != bestPlayers {
			t.Errorf("seed %d: got the tickets %v with %d players, want %v with %d\nrules %s", seed, got, proposals[0].Players, best, bestPlayers, body)
		}
		if !slices.Equal(got, best) {
			later++
		}
	}
	t.Logf("%d first matches, %d of tickets that come later than they had to", looked, later)
	if looked < 200 || later > looked/20 {
		t.Errorf("of %d first matches %d could have older tickets; want more matches, and fewer of those", looked, later)
	}
}
