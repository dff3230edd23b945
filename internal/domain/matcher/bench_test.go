package matcher

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

const oneOnOne = `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number","default":10}],
"teams":[{"name":"a","minPlayers":1,"maxPlayers":1},{"name":"b","minPlayers":1,"maxPlayers":1}],
"rules":[{"name":"Near","type":"distance","measurements":"max(flatten(teams[*].players.attributes[skill]))",
"referenceValue":"min(flatten(teams[*].players.attributes[skill]))","maxDistance":50}%s]}`

const closestFirst = `,{"name":"Closest","type":"distanceSort","sortDirection":"ascending","sortAttribute":"skill"}`

const fiveOnFive = `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number","default":10},
{"name":"level","type":"number","default":1},{"name":"mode","type":"string","default":"ranked"},{"name":"hero","type":"string","default":"x"}],
"teams":[{"name":"red","minPlayers":5,"maxPlayers":5},{"name":"blue","minPlayers":5,"maxPlayers":5}],
"rules":[{"name":"Near","type":"distance","measurements":"max(flatten(teams[*].players.attributes[skill]))",
"referenceValue":"min(flatten(teams[*].players.attributes[skill]))","maxDistance":100},{"name":"Ping","type":"latency","maxLatency":60}],
"expansions":[{"target":"rules[Near].maxDistance","steps":[{"waitTimeSeconds":10,"value":200},{"waitTimeSeconds":20,"value":400}]},
{"target":"rules[Ping].maxLatency","steps":[{"waitTimeSeconds":10,"value":100},{"waitTimeSeconds":30,"value":200}]}]}`

const balanced200 = `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number","default":10}],
"algorithm":{"strategy":"balanced","balancedAttribute":"skill","batchingPreference":"largestPopulation"},
"teams":[{"name":"red","minPlayers":100,"maxPlayers":100},{"name":"blue","minPlayers":100,"maxPlayers":100}],
"rules":[{"name":"Ping","type":"latency","maxLatency":150}]}`

// evenTeams has a rule that only a complete match can fail.
const evenTeams = `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number","default":10}],
"teams":[{"name":"red","minPlayers":5,"maxPlayers":5},{"name":"blue","minPlayers":5,"maxPlayers":5}],
"rules":[{"name":"Even","type":"distance","measurements":"avg(teams[*].players.attributes[skill])",
"referenceValue":"avg(flatten(teams[*].players.attributes[skill]))","maxDistance":10}]}`

const benchStart = domain.Time(1_700_000_000_000)

func number(name string, x float64) ruleset.NamedValue {
	return ruleset.NamedValue{Name: name, Value: ruleset.Value{Kind: ruleset.Number, Number: x}}
}

func text(name, s string) ruleset.NamedValue {
	return ruleset.NamedValue{Name: name, Value: ruleset.Value{Kind: ruleset.String, Text: s}}
}

// skilled returns a ticket of one player, whose skill is normally distributed around 1500.
func skilled(r *rand.Rand, key uint64, start domain.Time) Ticket {
	skill := math.Round(1500 + 300*r.NormFloat64())
	return Ticket{Key: key, Start: start, No: key, Players: []Player{{ID: fmt.Sprint("player-", key), Attributes: []ruleset.NamedValue{number("skill", skill)}}}}
}

var benchRegions = []string{"eu-central-1", "eu-west-1", "us-east-1", "us-west-2", "ap-northeast-1"}

// travelled returns a ticket with four attributes and latencies to five regions, one or two of them near.
func travelled(r *rand.Rand, key uint64, start domain.Time) Ticket {
	t := skilled(r, key, start)
	p := &t.Players[0]
	p.Attributes = append(p.Attributes, number("level", float64(r.IntN(60))), text("mode", "ranked"), text("hero", "hero"))
	home := r.IntN(len(benchRegions))
	for i, region := range benchRegions {
		far := min((i-home+5)%5, (home-i+5)%5)
		p.Latencies = append(p.Latencies, Latency{region, int32(20 + 60*far + r.IntN(40))})
	}
	return t
}

func loadPool(tb testing.TB, m *Matcher, tickets []Ticket) {
	for i := range tickets {
		if err := m.Add(tickets[i]); err != nil {
			tb.Fatal(err)
		}
	}
}

func drawTickets(n int, draw func(*rand.Rand, uint64, domain.Time) Ticket) []Ticket {
	r := rand.New(rand.NewPCG(1, 2))
	tickets := make([]Ticket, n)
	for i := range tickets {
		tickets[i] = draw(r, uint64(i), benchStart+domain.Time(i/100))
	}
	return tickets
}

func passAll(m *Matcher, now domain.Time) (matched int) {
	for m.Dirty() {
		for _, p := range m.Pass(now) {
			matched += len(p.Tickets)
		}
	}
	return matched
}

// benchPool measures how long a loaded pool takes to find all its matches, without the time to add tickets.
func benchPool(b *testing.B, body string, tickets []Ticket) {
	rules := mustParse(b, body)
	matched := 0
	for b.Loop() {
		b.StopTimer()
		m := New(rules, Config{Name: "bench"})
		loadPool(b, m, tickets)
		b.StartTimer()
		matched += passAll(m, benchStart+5_000)
	}
	b.ReportMetric(float64(matched)/b.Elapsed().Seconds(), "matched/s")
	b.ReportMetric(100*float64(matched)/float64(b.N*len(tickets)), "%matched")
}

func BenchmarkOneOnOneFrom20000Tickets(b *testing.B) {
	benchPool(b, fmt.Sprintf(oneOnOne, ""), drawTickets(20_000, skilled))
}

func BenchmarkOneOnOneClosestFirstFrom20000Tickets(b *testing.B) {
	benchPool(b, fmt.Sprintf(oneOnOne, closestFirst), drawTickets(20_000, skilled))
}

func BenchmarkFiveOnFiveFrom100000Tickets(b *testing.B) {
	benchPool(b, fiveOnFive, drawTickets(100_000, travelled))
}

func BenchmarkEvenTeamsOfFiveFrom10000Tickets(b *testing.B) {
	benchPool(b, evenTeams, drawTickets(10_000, skilled))
}

func BenchmarkAdd(b *testing.B) {
	tickets := drawTickets(100_000, travelled)
	rules := mustParse(b, fiveOnFive)
	for b.Loop() {
		loadPool(b, New(rules, Config{}), tickets)
	}
	b.ReportMetric(float64(b.N*len(tickets))/b.Elapsed().Seconds(), "tickets/s")
}

func BenchmarkBalanced200From10000Tickets(b *testing.B) {
	rules := mustParse(b, balanced200)
	tickets := drawTickets(10_000, travelled)
	var first, all int
	for b.Loop() {
		b.StopTimer()
		m := New(rules, Config{Name: "bench"})
		loadPool(b, m, tickets[:200])
		b.StartTimer()
		first += len(m.Pass(benchStart + 5_000))
		b.StopTimer()
		m = New(rules, Config{Name: "bench"})
		loadPool(b, m, tickets)
		b.StartTimer()
		all += len(m.Pass(benchStart + 5_000))
	}
	b.ReportMetric(float64(all)/float64(b.N), "matches")
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(all+first), "ms/match")
}

// BenchmarkPassOver80000Windows took six seconds for each pass when every ticket read every window.
func BenchmarkPassOver80000Windows(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		m := manyWindows(b, 80_000)
		b.StartTimer()
		m.Pass(benchStart)
	}
}

// BenchmarkWaitingPoolOf100000WithFewChanges uses 100,000 tickets that cannot match, because only eight are near each other, and adds a
// hundred before each pass.
func BenchmarkWaitingPoolOf100000WithFewChanges(b *testing.B) {
	rules := mustParse(b, fiveOnFive)
	m := New(rules, Config{Name: "bench"})
	r := rand.New(rand.NewPCG(3, 4))
	lonely := func(key uint64, start domain.Time) Ticket {
		t := travelled(r, key, start)
		t.Players[0].Attributes[0] = number("skill", float64(key/8*1000))
		return t
	}
	for i := range uint64(100_000) {
		if err := m.Add(lonely(i, benchStart)); err != nil {
			b.Fatal(err)
		}
	}
	now := benchStart
	passAll(m, now)
	key := uint64(1_000_000)
	for b.Loop() {
		b.StopTimer()
		for range 100 {
			key++
			m.Remove(key - 200)
			if err := m.Add(lonely(key, now)); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		m.Pass(now)
	}
}

// BenchmarkArrivals plays ten seconds of 5,000 arrivals a second into a pool of 100,000 waiting tickets, a pass each 100 ms
// of the tickets' time, and reports how long passes take: a ticket waits half an interval and one pass until its match is proposed.
func BenchmarkArrivalsOf5000EachSecondInto100000(b *testing.B) {
	rules := mustParse(b, fiveOnFive)
	var passes []float64
	matched := 0
	for b.Loop() {
		b.StopTimer()
		r := rand.New(rand.NewPCG(5, 6))
		m := New(rules, Config{Name: "bench"})
		key, now := uint64(0), benchStart
		for range 100_000 {
			key++
			if err := m.Add(travelled(r, key, now)); err != nil {
				b.Fatal(err)
			}
		}
		for range 100 {
			for range 500 {
				key++
				if err := m.Add(travelled(r, key, now)); err != nil {
					b.Fatal(err)
				}
			}
			now += 100
			before := b.Elapsed()
			b.StartTimer()
			for _, p := range m.Pass(now) {
				matched += len(p.Tickets)
			}
			b.StopTimer()
			passes = append(passes, float64(b.Elapsed()-before)/1e6)
		}
		b.StartTimer()
	}
	slices.Sort(passes)
	b.ReportMetric(passes[len(passes)/2], "ms/pass-median")
	b.ReportMetric(passes[len(passes)-1], "ms/pass-longest")
	b.ReportMetric(float64(matched)/b.Elapsed().Seconds(), "matched/s")
}

// BenchmarkMemoryOfWaitingTicket reports the memory of a waiting ticket of one player with four attributes and five latencies.
func BenchmarkMemoryOfWaitingTicket(b *testing.B) {
	rules := mustParse(b, fiveOnFive)
	const n = 100_000
	var bytes uint64
	for b.Loop() {
		tickets := drawTickets(n, travelled)
		heap := func() uint64 {
			runtime.GC()
			var s runtime.MemStats
			runtime.ReadMemStats(&s)
			return s.HeapAlloc
		}
		before := heap()
		m := New(rules, Config{})
		loadPool(b, m, tickets)
		bytes += heap() - before
		runtime.KeepAlive(tickets)
		runtime.KeepAlive(m)
	}
	b.ReportMetric(float64(bytes)/float64(b.N*n), "B/ticket")
}

// BenchmarkPassOfHopelessRulesOver10000Tickets uses 10,000 tickets whose candidates all fail when they are complete, which is the worst
// case. It measures how long one pass takes; the next continues.
func BenchmarkPassOfHopelessRulesOver10000Tickets(b *testing.B) {
	m := New(mustParse(b, hopelessRules), Config{Name: "bench"})
	loadPool(b, m, drawTickets(10_000, skilled))
	for b.Loop() {
		if m.Pass(benchStart + 5_000); !m.Dirty() {
			b.StopTimer()
			m = New(mustParse(b, hopelessRules), Config{Name: "bench"})
			loadPool(b, m, drawTickets(10_000, skilled))
			b.StartTimer()
		}
	}
	b.ReportMetric(float64(m.Stats().Waiting), "left-waiting")
}
