package simulate

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"time"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// WritePage writes reports side by side as a self-contained HTML page with plots.
func WritePage(w io.Writer, reports ...*Report) error {
	x := struct {
		Names   []string
		Length  string
		Timeout string
		Seed    uint64
		Lines   []Figure
		Charts  []Plot
	}{
		Length: duration(reports[0].Length), Timeout: duration(reports[0].Timeout), Seed: reports[0].Seed,
		Lines: Figures(reports...), Charts: Plots(reports...),
	}
	for _, r := range reports {
		x.Names = append(x.Names, r.RuleSet)
	}
	return page.Execute(w, &x)
}

func duration(seconds float64) string {
	return (time.Duration(seconds*1000) * time.Millisecond).Round(time.Second).String()
}

func charts(reports []*Report) (all []*chart) {
	all = append(all, waitsOverTime(reports), waitSpread(reports), arrivalsOverTime(reports))
	for _, name := range numbersIn(reports) {
		all = append(all, numberSpread(reports, name))
	}
	if latencies(reports) {
		all = append(all, latencySpread(reports))
	}
	if waits := waitsIn(reports); len(waits) > 1 {
		all = append(all, levelsUsed(reports, waits))
	}
	return all
}

// named returns the name of a series; with one report there is nothing to distinguish.
func named(reports []*Report, r *Report, what string) string {
	if len(reports) == 1 {
		return what
	}
	return r.RuleSet + ": " + what
}

// clock writes a time since the beginning for an axis: hours and minutes, and seconds unless they are zero.
func clock(seconds float64) string {
	whole := int64(seconds + 0.5)
	if s := whole % 60; s != 0 {
		return fmt.Sprintf("%d:%02d:%02d", whole/3600, whole/60%60, s)
	}
	return fmt.Sprintf("%d:%02d", whole/3600, whole/60%60)
}

func hours(reports []*Report) (places []string) {
	for _, s := range reports[0].OverTime {
		places = append(places, clock(s.From))
	}
	return places
}

func waitsOverTime(reports []*Report) *chart {
	c := &chart{title: "Wait, by when a ticket came", unit: "s", places: hours(reports)}
	for i, r := range reports {
		median, p95 := series{named(reports, r, "median"), i, false, nil}, series{named(reports, r, "p95"), i, true, nil}
		for _, s := range r.OverTime {
			m, p := s.Wait.P50, s.Wait.P95
			if s.Wait.Count == 0 {
				m, p = math.NaN(), math.NaN()
			}
			median.values, p95.values = append(median.values, m), append(p95.values, p)
		}
		c.series = append(c.series, median, p95)
	}
	return c
}

var spreadPlaces = []string{"median", "p75", "p90", "p95", "p99", "largest"}

func (s *Spread) values() []float64 { return []float64{s.P50, s.P75, s.P90, s.P95, s.P99, s.Max} }

func waitSpread(reports []*Report) *chart {
	c := &chart{title: "Wait of all tickets that were matched", unit: "s", places: spreadPlaces, bars: true}
	for i, r := range reports {
		c.series = append(c.series, series{named(reports, r, "wait"), i, false, r.Wait.values()})
	}
	return c
}

func arrivalsOverTime(reports []*Report) *chart {
	c := &chart{title: "Tickets that came, and those of them that timed out", unit: "tickets", places: hours(reports), bars: true}
	came := series{name: "came", report: 9}
	for _, s := range reports[0].OverTime {
		came.values = append(came.values, float64(s.Arrived))
	}
	c.series = append(c.series, came)
	for i, r := range reports {
		out := series{name: named(reports, r, "timed out"), report: i}
		for _, s := range r.OverTime {
			out.values = append(out.values, float64(s.TimedOut))
		}
		c.series = append(c.series, out)
	}
	return c
}

func numberSpread(reports []*Report, name string) *chart {
	c := &chart{title: fmt.Sprintf("%s: how far the players of a match are apart, and its teams' averages", name), unit: name, places: spreadPlaces, bars: true}
	for i, r := range reports {
		for _, n := range r.Numbers {
			if n.Name == name && n.Within.Count > 0 {
				c.series = append(c.series, series{named(reports, r, "players"), i, false, n.Within.values()}, series{named(reports, r, "teams"), i, true, n.Teams.values()})
			}
		}
	}
	return c
}

func latencySpread(reports []*Report) *chart {
	c := &chart{title: "Latency to the region that suits a match best", unit: "ms", places: spreadPlaces, bars: true}
	for i, r := range reports {
		if r.Latency != nil {
			c.series = append(c.series, series{named(reports, r, "farthest player"), i, false, r.Latency.Worst.values()}, series{named(reports, r, "average"), i, true, r.Latency.Mean.values()})
		}
	}
	return c
}

func levelsUsed(reports []*Report, waits []int32) *chart {
	c := &chart{title: "Matches by the expansion that they needed", unit: "% of the matches", bars: true}
	for _, wait := range waits {
		c.places = append(c.places, fmt.Sprintf("from %d s", wait))
	}
	for i, r := range reports {
		s := series{name: named(reports, r, "matches"), report: i}
		for _, wait := range waits {
			v := math.NaN()
			for _, l := range r.Levels {
				if l.Wait == wait && r.Matches.Count > 0 {
					v = 100 * float64(l.Matches) / float64(r.Matches.Count)
				}
			}
			s.values = append(s.values, v)
		}
		c.series = append(c.series, s)
	}
	return c
}
