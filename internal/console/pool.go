package console

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/plural"
	"github.com/musterhq/muster/internal/simulate"
)

// Bounds of the plots of a pool.
const (
	poolSample  = 4000 // tickets whose players are examined; in a larger pool, every second one, every third one, and so on
	poolBars    = 12   // of values that are strings
	poolRegions = 50   // to choose from
)

// pool shows the waiting tickets of a configuration as plots.
type pool struct {
	Attribute, Region   string // chosen
	Attributes, Regions []string
	Every               int // one in this many tickets was examined for latencies and attributes; 1: all
	Plots               []poolPlot
}

// poolPlot is a chart, with the same values as a table.
type poolPlot struct {
	simulate.Plot
	Head  string // heading of the categories in the table
	Rows  []poolRow
	Notes string
}

type poolRow struct{ Place, Value string }

// poolOf plots the waiting tickets of a configuration. If no attribute is chosen, it uses the first one of the rule set; if no region is chosen, it
// uses each player's lowest latency.
func poolOf(waiting []matchmaking.Ticket, now domain.Time, attributes []ruleset.Attribute, attribute, region string) (*pool, error) {
	x := &pool{Attribute: attribute, Region: region}
	for _, a := range attributes {
		x.Attributes = append(x.Attributes, a.Name)
	}
	if attribute != "" && !slices.Contains(x.Attributes, attribute) {
		return nil, domain.Refuse(domain.NotFound, "The rule set has no attribute %.100q.", attribute)
	}
	if attribute == "" && len(x.Attributes) > 0 {
		x.Attribute = x.Attributes[0]
	}
	x.Plots = append(x.Plots, agePlot(waiting, now))
	x.Every = max(1, (len(waiting)+poolSample-1)/poolSample)
	var rosters matchmaking.RosterReader
	var players []matchmaking.Player
	for i := 0; i < len(waiting); i += x.Every {
		players = append(players, rosters.Decode(waiting[i].Roster)...)
	}
	seen := map[string]int{}
	for i := range players {
		for _, l := range players[i].Latencies {
			seen[l.Region]++
		}
	}
	x.Regions = slices.SortedFunc(maps.Keys(seen), func(a, b string) int { return cmp.Or(cmp.Compare(seen[b], seen[a]), cmp.Compare(a, b)) })
	x.Regions = x.Regions[:min(len(x.Regions), poolRegions)]
	slices.Sort(x.Regions)
	x.Plots = append(x.Plots, latencyPlot(players, region))
	if i := slices.Index(x.Attributes, x.Attribute); i >= 0 {
		x.Plots = append(x.Plots, attributePlot(players, &attributes[i]))
	}
	return x, nil
}

// histogram counts values between edges. The first bin has the values below the first edge, the last bin those from the last edge on.
func histogram(edges []float64, values []float64) []float64 {
	counts := make([]float64, len(edges)+1)
	for _, v := range values {
		i, _ := slices.BinarySearchFunc(edges, v, func(edge, v float64) int {
			if edge <= v {
				return -1
			}
			return 1
		})
		counts[i]++
	}
	return counts
}

// counted returns a chart of counts.
func counted(title, unit, head, notes string, places []string, values []float64) poolPlot {
	p := poolPlot{Plot: simulate.Bars(title, unit, head, places, values), Head: head, Notes: notes}
	for i := range places {
		p.Rows = append(p.Rows, poolRow{places[i], strconv.FormatFloat(values[i], 'f', -1, 64)})
	}
	return p
}

var ageEdges = []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute}

func agePlot(waiting []matchmaking.Ticket, now domain.Time) poolPlot {
	edges := make([]float64, len(ageEdges))
	places := []string{"< 5 s"}
	for i, e := range ageEdges {
		edges[i] = e.Seconds()
		switch {
		case i == len(ageEdges)-1:
			places = append(places, "≥ 30 min")
		case ageEdges[i+1] < time.Minute:
			places = append(places, strconv.Itoa(int(e.Seconds()))+"–"+strconv.Itoa(int(ageEdges[i+1].Seconds()))+" s")
		case e < time.Minute:
			places = append(places, "30–60 s")
		default:
			places = append(places, strconv.Itoa(int(e.Minutes()))+"–"+strconv.Itoa(int(ageEdges[i+1].Minutes()))+" min")
		}
	}
	values := make([]float64, len(waiting))
	for i := range waiting {
		values[i] = now.Sub(waiting[i].Start).Seconds()
	}
	return counted("Tickets by age", "tickets", "Waits for", "", places, histogram(edges, values))
}

var latencyEdges = []float64{20, 40, 60, 80, 100, 150, 200, 300, 500}

func latencyPlot(players []matchmaking.Player, region string) poolPlot {
	places := []string{"< 20 ms"}
	for i, e := range latencyEdges {
		if i == len(latencyEdges)-1 {
			places = append(places, "≥ 500 ms")
			break
		}
		places = append(places, strconv.Itoa(int(e))+"–"+strconv.Itoa(int(latencyEdges[i+1]))+" ms")
	}
	var values []float64
	without := 0
	for i := range players {
		least := math.Inf(1)
		for _, l := range players[i].Latencies {
			if region == "" || l.Region == region {
				least = min(least, float64(l.Milliseconds))
			}
		}
		if math.IsInf(least, 1) {
			without++
			continue
		}
		values = append(values, least)
	}
	title := "Players by least latency"
	if region != "" {
		title = "Players by latency to " + region
	}
	return counted(title, "players", "Latency", missing(without, "said no latency"), places, histogram(latencyEdges, values))
}

// missing returns a note of how many players have no value.
func missing(n int, what string) string {
	if n == 0 {
		return ""
	}
	return plural.Of(n, "player", "players") + " " + what + "."
}

func attributePlot(players []matchmaking.Player, a *ruleset.Attribute) poolPlot {
	var numbers []float64
	words := map[string]float64{}
	sums, counts := map[string]float64{}, map[string]float64{}
	without := 0
	for i := range players {
		j := slices.IndexFunc(players[i].Attributes, func(v ruleset.NamedValue) bool { return v.Name == a.Name })
		if j < 0 {
			without++
			continue
		}
		switch v := &players[i].Attributes[j].Value; v.Kind {
		case ruleset.Number:
			numbers = append(numbers, v.Number)
		case ruleset.String:
			words[v.Text]++
		case ruleset.List:
			for _, word := range v.List {
				words[word]++
			}
		case ruleset.Map:
			for _, e := range v.Map {
				sums[e.Key] += e.Number
				counts[e.Key]++
			}
		default:
			without++
		}
	}
	title, notes := "Players by "+a.Name, missing(without, "gave no "+a.Name+", and the rule set’s default counts if it has one")
	switch a.Kind {
	case ruleset.Number:
		places, values := numberBars(numbers)
		return counted(title, "players", a.Name, notes, places, values)
	case ruleset.Map:
		keys := largest(counts)
		values := make([]float64, len(keys))
		for i, key := range keys {
			values[i] = math.Round(sums[key]/counts[key]*100) / 100
		}
		return counted("Average of "+a.Name+" by key", "", a.Name, notes, keys, values)
	}
	keys := largest(words)
	values, others := make([]float64, len(keys)), 0.0
	for i, key := range keys {
		values[i] = words[key]
	}
	for key, n := range words {
		if !slices.Contains(keys, key) {
			others += n
		}
	}
	if others > 0 {
		keys, values = append(keys, "others"), append(values, others)
	}
	return counted(title, "players", a.Name, notes, keys, values)
}

// largest returns the keys with the largest values.
func largest(of map[string]float64) []string {
	keys := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
	return keys[:min(len(keys), poolBars)]
}

// numberBars counts numbers in at most poolBars steps of equal width with round edges.
func numberBars(numbers []float64) (places []string, values []float64) {
	if len(numbers) == 0 {
		return nil, nil
	}
	low, high := slices.Min(numbers), slices.Max(numbers)
	step := 1.0
	if high > low {
		step = math.Pow(10, math.Floor(math.Log10(max(high/poolBars-low/poolBars, math.SmallestNonzeroFloat64*1e10)))) // neither 0 nor infinite
		for _, f := range []float64{1, 2, 5, 10, 20} {
			if math.Floor(high/(f*step))-math.Floor(low/(f*step)) < poolBars {
				step *= f
				break
			}
		}
	}
	first := math.Floor(low / step)
	values = make([]float64, int(min(math.Floor(high/step)-first+1, 2*poolBars)))
	for i := range values {
		places = append(places, readable((first+float64(i))*step, ""))
	}
	for _, n := range numbers {
		values[min(max(int(math.Floor(n/step)-first), 0), len(values)-1)]++
	}
	return places, values
}
