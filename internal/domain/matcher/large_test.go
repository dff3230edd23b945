package matcher

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// TestDocumentedFillOrder plays the example of docs/spec/flexmatch.md#large-matches: Red and Blue take 10 (at least 5), Green 3 (at least
// 2).
func TestDocumentedFillOrder(t *testing.T) {
	const body = `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number","default":10}],
"algorithm":{"strategy":"balanced","balancedAttribute":"skill","batchingPreference":"largestPopulation"},
"teams":[{"name":"Red","minPlayers":5,"maxPlayers":10},{"name":"Blue","minPlayers":5,"maxPlayers":10},{"name":"Green","minPlayers":2,"maxPlayers":3},
{"name":"Rest","minPlayers":0,"maxPlayers":20}]}`
	// The team Rest only makes the rule set a large one. It always has the most open slots once the others have their minimum, so 12
	// players show the minimums, and 32 show that the others come after it.
	for players, want := range map[int][]int{12: {5, 5, 2, 0}, 13: {5, 5, 2, 1}, 32: {7, 7, 2, 16}, 43: {10, 10, 3, 20}} {
		m := New(mustParse(t, body), Config{})
		for key := range uint64(players) {
			if err := m.Add(Ticket{Key: key, Start: benchStart, No: key, Players: []Player{{ID: fmt.Sprint(key)}}}); err != nil {
				t.Fatal(err)
			}
		}
		proposals := m.Pass(benchStart)
		if len(proposals) != 1 {
			t.Fatalf("%d players: got %d proposals, want one", players, len(proposals))
		}
		var sizes []int
		for _, seats := range proposals[0].Teams {
			sizes = append(sizes, len(seats))
		}
		if !slices.Equal(sizes, want) {
			t.Errorf("%d players: got teams of %v, want %v", players, sizes, want)
		}
	}
}

// TestBalanceLeavesNoImprovingExchange makes random large matches with parties: all are legal, and no exchange of two tickets of equal
// size brings the averages closer.
func TestBalanceLeavesNoImprovingExchange(t *testing.T) {
	matches := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 5))
		teams := 2 + r.IntN(3)
		body := fmt.Sprintf(`{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number","default":10},{"name":"mode","type":"string","default":"a"}],
"algorithm":{"strategy":"balanced","balancedAttribute":"skill","batchingPreference":"%s"},
"teams":[{"name":"t","minPlayers":%d,"maxPlayers":%d,"quantity":%d}],
"rules":[%s]}`, pick(r, "largestPopulation", "fastestRegion"), 10+r.IntN(10), 25, teams, pick(r, ``,
			`{"name":"Ping","type":"latency","maxLatency":120}`,
			`{"name":"Near","type":"batchDistance","batchAttribute":"skill","maxDistance":400},{"name":"Mode","type":"batchDistance","batchAttribute":"mode"}`))
		rules := mustParse(t, body)
		m := New(rules, Config{Name: "balance"})
		pool := map[uint64]Ticket{}
		for key := range uint64(300) {
			ticket := largeTicket(r, rules, key)
			pool[key] = ticket
			if err := m.Add(ticket); err != nil {
				t.Fatal(err)
			}
		}
		for m.Dirty() {
			for _, p := range m.Pass(benchStart + 1000) {
				matches++
				if wrong := illegal(rules, pool, &p, benchStart+1000, 0); wrong != "" {
					t.Fatalf("seed %d: %s", seed, wrong)
				}
				if gain := bestExchange(pool, &p); gain > 1e-6 {
					t.Errorf("seed %d: an exchange brings the averages closer by %v", seed, gain)
				}
			}
		}
	}
	if matches < 60 {
		t.Errorf("%d matches, want more", matches)
	}
}

func largeTicket(r *rand.Rand, rules *ruleset.RuleSet, key uint64) Ticket {
	t := Ticket{Key: key, Start: benchStart + domain.Time(key), No: key, Backfill: r.IntN(60) == 0, FreeSlots: -1}
	team := rules.Teams[r.IntN(len(rules.Teams))].Name
	for i := range pick(r, 1, 1, 1, 1, 2, 2, 3) {
		p := Player{ID: fmt.Sprint(key, ".", i), Team: team}
		p.Attributes = []ruleset.NamedValue{number("skill", float64(1000+r.IntN(1000))), text("mode", string('a'+rune(key%2)))}
		for _, region := range benchRegions[:3] {
			if r.IntN(3) > 0 {
				p.Latencies = append(p.Latencies, Latency{region, int32(20 + r.IntN(130))})
			}
		}
		t.Players = append(t.Players, p)
	}
	return t
}

// bestExchange returns by how much the best exchange of two tickets reduces the spread.
func bestExchange(pool map[uint64]Ticket, p *Proposal) float64 {
	team := make([]int, len(p.Tickets))
	for at, seats := range p.Teams {
		for _, s := range seats {
			team[s.Ticket] = at
		}
	}
	sum := func(i int) (x float64) {
		for _, player := range pool[p.Tickets[i]].Players {
			x += player.Attributes[0].Number
		}
		return x
	}
	spread := func() float64 {
		var sums, sizes [64]float64
		for i := range p.Tickets {
			sums[team[i]] += sum(i)
			sizes[team[i]] += float64(len(pool[p.Tickets[i]].Players))
		}
		var means []float64
		for at := range sums {
			if sizes[at] > 0 {
				means = append(means, sums[at]/sizes[at])
			}
		}
		return slices.Max(means) - slices.Min(means)
	}
	before, best := spread(), 0.0
	for i := range p.Tickets {
		for k := range i {
			a, b := pool[p.Tickets[i]], pool[p.Tickets[k]]
			if team[i] == team[k] || len(a.Players) != len(b.Players) || a.Backfill || b.Backfill {
				continue
			}
			team[i], team[k] = team[k], team[i]
			best = max(best, before-spread())
			team[i], team[k] = team[k], team[i]
		}
	}
	return best
}

// TestLargePoolComesToRest: whatever the work of a pass and the number of locations, the passes make the matches that there are, at every
// level, and then end, although there are tickets that match none.
func TestLargePoolComesToRest(t *testing.T) {
	rules := mustParse(t, `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number","default":10},{"name":"mode","type":"string"}],
"algorithm":{"strategy":"balanced","balancedAttribute":"skill"},
"teams":[{"name":"red","minPlayers":21,"maxPlayers":21},{"name":"blue","minPlayers":21,"maxPlayers":21}],
"rules":[{"name":"Mode","type":"batchDistance","batchAttribute":"mode"},{"name":"Ping","type":"latency","maxLatency":150}],
"expansions":[{"target":"rules[Ping].maxLatency","steps":[{"waitTimeSeconds":10,"value":200}]}]}`)
	for _, work := range []int{1, 2000, 0} {
		for _, preference := range []string{"largestPopulation", "fastestRegion"} {
			rules.Algorithm.Batching = map[string]ruleset.Batching{"largestPopulation": ruleset.LargestPopulation, "fastestRegion": ruleset.FastestRegion}[preference]
			r := rand.New(rand.NewPCG(1, 1))
			m := New(rules, Config{Work: work})
			add := func(key uint64, mode string, start domain.Time) {
				ticket := Ticket{Key: key, Start: start, No: key, Players: []Player{{ID: fmt.Sprint(key), Attributes: []ruleset.NamedValue{text("mode", mode)}}}}
				for i := range 10 {
					ticket.Players[0].Latencies = append(ticket.Players[0].Latencies, Latency{fmt.Sprint("region-", i), int32(20 + r.IntN(100))})
				}
				if err := m.Add(ticket); err != nil {
					t.Fatal(err)
				}
			}
			for key := range uint64(205) { // 41 of each mode, where 42 are needed
				add(key, fmt.Sprint("few-", key%5), benchStart)
			}
			for key := range uint64(84) {
				add(1000+key, "old", benchStart)
				add(2000+key, "young", benchStart+15_000)
			}
			matches, passes := 0, 0
			for ; m.Dirty() && passes < 2000; passes++ {
				matches += len(m.Pass(benchStart + 20_000))
			}
			if matches != 4 || m.Dirty() {
				t.Errorf("%s with passes of %d steps: %d matches after %d passes, and dirty is %v; want 4, and the end", preference, work, matches, passes, m.Dirty())
			}
		}
	}
}

// TestLargeLevelThatEndsEarly: if a pass is cut short and its matches leave too few tickets for the rest of its level, the next level still has all of
// its batches.
func TestLargeLevelThatEndsEarly(t *testing.T) {
	rules := mustParse(t, `{"ruleLanguageVersion":"1.0",
"teams":[{"name":"red","minPlayers":21,"maxPlayers":21},{"name":"blue","minPlayers":21,"maxPlayers":21}],
"algorithm":{"strategy":"balanced","batchingPreference":"largestPopulation","balancedAttribute":"skill"},
"playerAttributes":[{"name":"skill","type":"number","default":10}],
"rules":[{"name":"Ping","type":"latency","maxLatency":150}],
"expansions":[{"target":"rules[Ping].maxLatency","steps":[{"waitTimeSeconds":10,"value":200}]}]}`)
	m := New(rules, Config{Work: 1})
	for key := range uint64(84) {
		ticket := Ticket{Key: key, Start: benchStart, No: key, Players: []Player{{ID: fmt.Sprint(key), Latencies: []Latency{{"a", 50}}}}}
		switch {
		case key >= 42:
			ticket.Start += 15_000
		case key >= 21:
			ticket.Players[0].Latencies = append(ticket.Players[0].Latencies, Latency{"b", 50})
		}
		if err := m.Add(ticket); err != nil {
			t.Fatal(err)
		}
	}
	matches := 0
	for range 100 {
		matches += len(m.Pass(benchStart + 20_000))
	}
	if matches != 2 {
		t.Errorf("got %d matches, want one of the old tickets and one of the young", matches)
	}
}

// manyWindows returns a pool with a window for each ticket, all of which a pass tries in vain: parties of six do not fill teams of ten.
func manyWindows(t testing.TB, tickets uint64) *Matcher {
	m := New(mustParse(t, `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number"}],
"algorithm":{"strategy":"balanced","balancedAttribute":"skill"},"teams":[{"name":"t","minPlayers":10,"maxPlayers":10,"quantity":5}],
"rules":[{"name":"Near","type":"batchDistance","batchAttribute":"skill","maxDistance":8}]}`), Config{Work: int(100 * tickets)})
	for key := range tickets {
		ticket := Ticket{Key: key, Start: benchStart, No: key, Players: make([]Player, 6)}
		for i := range ticket.Players {
			skill := ruleset.Value{Kind: ruleset.Number, Number: float64(key * 7919 % tickets)}
			ticket.Players[i] = Player{ID: fmt.Sprint(key, "-", i), Attributes: []ruleset.NamedValue{{Name: "skill", Value: skill}}}
		}
		if err := m.Add(ticket); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestPassWithManyWindowsEnds(t *testing.T) {
	m := manyWindows(t, 80_000)
	if proposals := m.Pass(benchStart); len(proposals) > 0 || m.Dirty() {
		t.Fatalf("got %d proposals, work left: %v; want none, and all windows tried", len(proposals), m.Dirty())
	}
}

// TestUntriedWindowsOfATicket compares with a look at every window.
func TestUntriedWindowsOfATicket(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 9))
		var windows []valueWindow
		for from, to := 0, 0; len(windows) < 12; {
			from += 1 + r.IntN(3)
			to = max(from, to) + 1 + r.IntN(4)
			windows = append(windows, valueWindow{from, to, int32(r.IntN(4))})
		}
		tried := make([]bool, len(windows))
		for i := range tried {
			tried[i] = r.IntN(3) == 0
		}
		for ticket := range 60 {
			var want []int
			for i, w := range windows {
				if !tried[i] && w.from <= ticket && ticket < w.to {
					want = append(want, i)
				}
			}
			slices.SortStableFunc(want, func(a, b int) int { return int(windows[b].players - windows[a].players) })
			if got := untriedAt(windows, tried, ticket); !slices.Equal(got, want) {
				t.Fatalf("seed %d, ticket %d of %v: got %v, want %v", seed, ticket, windows, got, want)
			}
		}
	}
}

// TestManyLocationsStayCheap: players name whatever locations they like. Thousands of them cost a pass little more than its bound, although
// tickets without latencies accept each.
func TestManyLocationsStayCheap(t *testing.T) {
	const tickets, work = 8000, 100_000
	for _, preference := range []string{"largestPopulation", "fastestRegion"} {
		m := New(mustParse(t, fmt.Sprintf(`{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number","default":1}],
"algorithm":{"strategy":"balanced","balancedAttribute":"skill","batchingPreference":"%s"},
"teams":[{"name":"t","minPlayers":10,"maxPlayers":10,"quantity":5}]}`, preference)), Config{Work: work})
		for key := range uint64(tickets) {
			// Parties of six do not fill teams of ten.
			ticket := Ticket{Key: key, Start: benchStart, No: key, Players: make([]Player, 6)}
			for i := range ticket.Players {
				ticket.Players[i].ID = fmt.Sprint(key, "-", i)
				if key%2 == 0 {
					ticket.Players[i].Latencies = []Latency{{fmt.Sprint("r", key), 10}}
				}
			}
			if err := m.Add(ticket); err != nil {
				t.Fatal(err)
			}
		}
		for range 5 {
			before := m.stats.Steps
			m.Pass(benchStart)
			if steps := m.stats.Steps - before; steps > 2*work {
				t.Fatalf("%s: a pass of %d steps, want little more than %d", preference, steps, work)
			}
		}
	}
}
