package console

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterhq/muster/internal/gamemetrics"
	"github.com/musterhq/muster/internal/series"
)

// graphLines is the maximum number of lines in a graph.
const graphLines = 12

// measure is the statistic that a line shows of each step.
type measure uint8

const (
	average measure = iota
	total           // how often something happened
)

// graph is a set of lines that share a scale.
type graph struct {
	ID, Title string
	Unit      string // Count, Percent, Seconds or Bytes
	Counts    bool   // all lines are totals
	Lines     []line
}

// line is one series of a graph.
type line struct {
	Name    string
	key     series.Key
	measure measure
	gauge   bool // has a value in each minute in which the service ran
}

// curve has the values of a line, one for each step; NaN where there is none.
type curve struct {
	values            []float64
	low, high, middle float64 // of all samples or, for a total, of the steps; NaN without any
}

// definitions are the service's metrics by subject and name.
var definitions = func() map[gamemetrics.Subject]map[string]*gamemetrics.Definition {
	all := map[gamemetrics.Subject]map[string]*gamemetrics.Definition{}
	for _, d := range gamemetrics.Table {
		if all[d.Of] == nil {
			all[d.Of] = map[string]*gamemetrics.Definition{}
		}
		all[d.Of][d.Name] = d
	}
	return all
}()

// graphOf returns a graph of metrics of one subject, with the dimensions of the series.
func graphOf(id, title string, of gamemetrics.Subject, dimensions []series.Dimension, metrics ...string) graph {
	g := graph{ID: id, Title: title}
	for _, name := range metrics {
		d := definitions[of][name]
		g.Unit = d.Unit
		g.Lines = append(g.Lines, lineOf(d, name, series.MakeKey(name, dimensions...)))
	}
	g.Counts = g.Lines[0].measure == total
	return g
}

func lineOf(d *gamemetrics.Definition, name string, key series.Key) line {
	l := line{Name: name, key: key, gauge: d.Kind == gamemetrics.Gauge}
	if d.Kind == gamemetrics.Counter {
		l.measure = total
	}
	return l
}

// drawing has the graphs of a page within a window of time.
type drawing struct {
	graphs []graph
	span   timespan
	from   int64     // minute
	steps  int       // points of each curve
	curves [][]curve // by graph and line
}

// draw reads the graphs. A total without samples is 0 in the steps in which the service kept metrics, and unknown in others. The gauges
// among the lines and the series present show which steps those are.
func (d *Door) draw(graphs []graph, span timespan, present series.Key) (drawing, error) {
	now := d.engine.Now().Unix() / 60
	from, to, steps := span.window(now)
	x := drawing{graphs: graphs, span: span, from: from, steps: steps}
	if d.config.Series == nil {
		return x, nil
	}
	kept := make([]bool, steps)
	slots := func(key series.Key) ([]series.Slot, error) {
		if span.hours() {
			return d.config.Series.Hours(key, from, to)
		}
		return d.config.Series.Minutes(key, from, to)
	}
	stats := make([][][]series.Stat, len(graphs))
	for g := range graphs {
		stats[g] = make([][]series.Stat, len(graphs[g].Lines))
		for l, line := range graphs[g].Lines {
			all, err := slots(line.key)
			if err != nil {
				return x, err
			}
			stats[g][l] = make([]series.Stat, steps)
			for _, s := range all {
				step := int((s.Minute - from) / span.step)
				if s.Minute < from || step >= steps {
					continue // an hour that started before the window
				}
				stats[g][l][step].Add(s.Stat)
				kept[step] = kept[step] || line.gauge
			}
		}
	}
	if present != "" {
		all, err := slots(present)
		if err != nil {
			return x, err
		}
		for _, s := range all {
			if step := int((s.Minute - from) / span.step); s.Minute >= from && step < steps {
				kept[step] = true
			}
		}
	}
	if span.step > 1 {
		kept[steps-1] = false // the last step is not over, so its totals would look like a drop
	}
	for g := range graphs {
		keepLargest(&graphs[g], &stats[g])
		x.curves = append(x.curves, make([]curve, len(graphs[g].Lines)))
		for l, line := range graphs[g].Lines {
			x.curves[g][l] = line.measure.curve(stats[g][l], kept)
		}
	}
	return x, nil
}

// keepLargest keeps only as many lines of a graph as it can show: those with the largest sums, in their previous order.
func keepLargest(g *graph, stats *[][]series.Stat) {
	if len(g.Lines) <= graphLines {
		return
	}
	sums, order := make([]float64, len(g.Lines)), make([]int, len(g.Lines))
	for l, all := range *stats {
		order[l] = l
		for _, s := range all {
			sums[l] += s.Sum
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sums[b], sums[a]) })
	order = order[:graphLines]
	slices.Sort(order)
	lines, kept := make([]line, graphLines), make([][]series.Stat, graphLines)
	for i, l := range order {
		lines[i], kept[i] = g.Lines[l], (*stats)[l]
	}
	g.Lines, *stats = lines, kept
}

// curve computes the values of a line from the samples of each step.
func (m measure) curve(stats []series.Stat, kept []bool) curve {
	c := curve{values: make([]float64, len(stats)), low: math.NaN(), high: math.NaN(), middle: math.NaN()}
	var sum series.Stat
	for i, s := range stats {
		switch {
		case m == total && !kept[i]:
			c.values[i] = math.NaN()
			continue
		case m == total:
			c.values[i] = s.Sum
			sum.Add(series.Of(s.Sum))
		case s.Count == 0:
			c.values[i] = math.NaN()
		default:
			c.values[i] = s.Sum / s.Count
			sum.Add(s)
		}
	}
	if sum.Count > 0 {
		c.low, c.high, c.middle = sum.Min, sum.Max, sum.Sum/sum.Count
	}
	return c
}
