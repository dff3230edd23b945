package matcher

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/domain"
)

// These tests measure how good matches are, not only how many: the skill gap within 1v1 matches of the same players with the same arrival
// times, compared with first come, first served, and with the optimal pairs of a small pool that contains all players from the start.

// arrival is one player of a population.
type arrival struct {
	at    int64 // ms
	skill float64
}

// population draws players with random arrival times and normally distributed skill.
func population(seed uint64, n int, over int64) []arrival {
	r := rand.New(rand.NewPCG(seed, 11))
	people := make([]arrival, n)
	for i := range people {
		people[i] = arrival{r.Int64N(over + 1), math.Round(1500 + 300*r.NormFloat64())}
	}
	slices.SortStableFunc(people, func(a, b arrival) int { return int(a.at - b.at) })
	return people
}

// quality is the result for a population.
type quality struct {
	gap     float64 // within a match, on average
	wait    float64 // seconds, on average, of matched players
	matched float64 // of all players, in percent
	who     []arrival
}

// playPopulation runs the matcher with a pass at every interval.
func playPopulation(tb testing.TB, body string, people []arrival, interval, until int64) quality {
	m := New(mustParse(tb, body), Config{Name: "quality"})
	var q quality
	next, matched := 0, 0
	for at := int64(0); at <= until; at += interval {
		for ; next < len(people) && people[next].at <= at; next++ {
			t := Ticket{Key: uint64(next), Start: benchStart + domain.Time(people[next].at), No: uint64(next),
				Players: []Player{{ID: fmt.Sprint(next)}}}
			t.Players[0].Attributes = append(t.Players[0].Attributes, number("skill", people[next].skill))
			if err := m.Add(t); err != nil {
				tb.Fatal(err)
			}
		}
		for _, p := range m.Pass(benchStart + domain.Time(at)) {
			a, b := people[p.Tickets[0]], people[p.Tickets[1]]
			q.gap += 2 * math.Abs(a.skill-b.skill)
			q.wait += float64(2*at-a.at-b.at) / 1000
			matched += 2
			q.who = append(q.who, a, b)
		}
	}
	return q.of(matched, len(people))
}

// firstCome pairs the two players who arrived first and whose skills are within a limit, as a queue does, at the times of passes, so that
// waits can be compared.
func firstCome(people []arrival, limit float64, interval int64) quality {
	var q quality
	var waiting []arrival
	matched := 0
	for _, p := range people {
		at := slices.IndexFunc(waiting, func(w arrival) bool { return math.Abs(w.skill-p.skill) <= limit })
		if at < 0 {
			waiting = append(waiting, p)
			continue
		}
		q.gap += 2 * math.Abs(waiting[at].skill-p.skill)
		pass := (p.at + interval - 1) / interval * interval
		q.wait += float64(2*pass-p.at-waiting[at].at) / 1000
		matched += 2
		waiting = slices.Delete(waiting, at, at+1)
	}
	return q.of(matched, len(people))
}

// optimum pairs neighbours in skill among the players whom the matcher matched, too. For an even number of players this minimizes the sum
// of gaps.
func optimum(people []arrival) quality {
	sorted := slices.Clone(people)
	slices.SortFunc(sorted, func(a, b arrival) int { return int(a.skill - b.skill) })
	var q quality
	for i := 0; i+1 < len(sorted); i += 2 {
		q.gap += 2 * (sorted[i+1].skill - sorted[i].skill)
	}
	return q.of(len(sorted)/2*2, len(sorted))
}

func (q quality) of(matched, all int) quality {
	n := max(1, float64(matched))
	return quality{q.gap / n, q.wait / n, 100 * float64(matched) / float64(all), q.who}
}

// TestQualityAgainstBaselineAndOptimum bounds the figures that the benchmark reports.
func TestQualityAgainstBaselineAndOptimum(t *testing.T) {
	closest := fmt.Sprintf(oneOnOne, closestFirst)
	people := population(1, 5000, 60_000)
	base, sorted := firstCome(people, 50, 1000), playPopulation(t, closest, people, 1000, 120_000)
	if sorted.gap > base.gap/2 || sorted.matched < 97 {
		t.Errorf("closest first: got a gap of %.2f and %.1f%% matched, want half of the gap of first come, %.2f, and nearly all matched", sorted.gap, sorted.matched, base.gap)
	}
	small := population(2, 200, 0)
	all := playPopulation(t, closest, small, 1000, 1000)
	best := optimum(all.who)
	t.Logf("5,000 over a minute: a gap of %.2f first come, %.2f closest first; 200 at once: %.2f closest first, %.2f at best", base.gap, sorted.gap, all.gap, best.gap)
	if all.gap > 4*best.gap {
		t.Errorf("a small pool at once: got a gap of %.2f, want it near the optimum's %.2f", all.gap, best.gap)
	}
}

func BenchmarkQualityOfOneOnOne(b *testing.B) {
	people, small := population(1, 20_000, 60_000), population(2, 200, 0)
	var byAge, closest, atOnce quality
	for b.Loop() {
		byAge = playPopulation(b, fmt.Sprintf(oneOnOne, ""), people, 1000, 120_000)
		closest = playPopulation(b, fmt.Sprintf(oneOnOne, closestFirst), people, 1000, 120_000)
		atOnce = playPopulation(b, fmt.Sprintf(oneOnOne, closestFirst), small, 1000, 1000)
	}
	base := firstCome(people, 50, 1000)
	b.ReportMetric(base.gap, "gap-first-come")
	b.ReportMetric(base.wait, "wait-first-come")
	b.ReportMetric(byAge.gap, "gap-by-age")
	b.ReportMetric(byAge.wait, "wait-by-age")
	b.ReportMetric(closest.gap, "gap-closest")
	b.ReportMetric(closest.wait, "wait-closest")
	b.ReportMetric(optimum(atOnce.who).gap, "gap-200-optimum")
	b.ReportMetric(atOnce.gap, "gap-200-closest")
	b.ReportMetric(atOnce.matched, "%matched-200")
}
