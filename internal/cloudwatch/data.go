package cloudwatch

import (
	"encoding/base64"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/gamemetrics"
	"github.com/musterhq/muster/internal/series"
)

// Namespace is the namespace of all metrics, the same as that of the cloud service.
const Namespace = "AWS/GameLift"

// Documented bounds.
const (
	queriesMax    = 500
	dimensionsMax = 30
	dataMax       = 100_800
	statisticsMax = 1440
	listMax       = 500
	seriesMax     = 500 // of all queries of a request, including those that searches find
)

// statistics are those that can be computed from the stored series.
var statistics = map[string]func(series.Stat) float64{
	"SampleCount": func(s series.Stat) float64 { return s.Count }, "Sum": func(s series.Stat) float64 { return s.Sum },
	"Average": func(s series.Stat) float64 { return s.Sum / s.Count },
	"Minimum": func(s series.Stat) float64 { return s.Min }, "Maximum": func(s series.Stat) float64 { return s.Max },
}

func checkStatistic(name string) error {
	if _, ok := statistics[name]; !ok {
		return invalid("The statistic %s is not stored; want SampleCount, Average, Sum, Minimum or Maximum.", clip(name))
	}
	return nil
}

// periodOf returns a period in minutes.
func periodOf(seconds int64, what string) (int64, error) {
	if seconds < 60 || seconds%60 != 0 || seconds > 86_400*365 {
		return 0, invalid("%s is %d seconds; want a multiple of 60, because one value is stored for each minute.", what, seconds)
	}
	return seconds / 60, nil
}

// span is a time in minutes since 1970, the end excluded.
type span struct{ from, to int64 }

func readSpan(r reader) (s span) {
	from, to := r.time("StartTime"), r.time("EndTime")
	if *r.err == nil && !from.Before(to) {
		*r.err = invalid("The parameter StartTime must be less than the parameter EndTime.")
	}
	return span{from.Unix() / 60, (to.Unix() + 59) / 60}
}

// dimensionsOf reads dimensions. A missing value becomes "" unless needValue is set.
func dimensionsOf(r reader, needValue bool) (all []series.Dimension) {
	for _, x := range r.structures("Dimensions", dimensionsMax) {
		d := series.Dimension{Name: x.required("Name")}
		if needValue {
			d.Value = x.required("Value")
		} else {
			d.Value = x.text("Value")
		}
		all = append(all, d)
	}
	return all
}

// find returns the series of a metric; none if it has no samples. The caller's dimensions may be in any order.
func (d *Door) find(space, metric string, dimensions []series.Dimension) []named {
	if space != Namespace {
		return nil
	}
	for _, def := range gamemetrics.Table {
		for _, set := range def.DimensionSets() {
			if len(set) != len(dimensions) {
				continue
			}
			var sorted []series.Dimension
			for _, name := range set {
				if i := slices.IndexFunc(dimensions, func(x series.Dimension) bool { return x.Name == name }); i >= 0 {
					sorted = append(sorted, dimensions[i])
				}
			}
			if len(sorted) == len(set) && def.Is(metric) {
				return []named{{series.MakeKey(metric, sorted...), metric, sorted}}
			}
		}
	}
	return nil
}

// value is one data point.
type value struct {
	minute int64
	series.Stat
}

// values returns the data points of a series. It reads minutes if they are still stored for the whole span. Otherwise it reads hours, and rounds the period up to
// whole hours. Periods begin at multiples of their length, or with fromStart at the start of the span.
func (d *Door) values(k series.Key, s span, period int64, fromStart bool) (all []value, err error) {
	read, step := d.config.Store.Minutes, int64(1)
	if s.from < d.config.now().Unix()/60-series.MinutesKept {
		read, step = d.config.Store.Hours, 60
		period = (period + step - 1) / step * step
	}
	origin := int64(0)
	if fromStart {
		origin = s.from / step * step % period
	}
	floor := func(minute int64) int64 { return minute - ((minute-origin)%period+period)%period }
	slots, err := read(k, floor(s.from), s.to)
	if err != nil {
		return nil, err
	}
	for _, x := range slots {
		at := floor(x.Minute)
		if n := len(all); n == 0 || all[n-1].minute != at {
			all = append(all, value{minute: at})
		}
		all[len(all)-1].Add(x.Stat)
	}
	return all, nil
}

// unitOf returns the unit of a metric.
func unitOf(metric string) string {
	for _, def := range gamemetrics.Table {
		if def.Is(metric) {
			return def.Unit
		}
	}
	return "None"
}

func timeOf(minute int64) time.Time { return time.Unix(minute*60, 0).UTC() }

func (d *Door) getMetricStatistics(r reader) (fields, error) {
	space, metric, dimensions, s := r.required("Namespace"), r.required("MetricName"), dimensionsOf(r, true), readSpan(r)
	if !r.has("Period") && *r.err == nil {
		*r.err = &refusal{codeMissing, "The parameter Period is required."}
	}
	seconds, unit := r.number("Period", 0), r.text("Unit")
	var wanted []string
	for _, x := range r.list("Statistics", 5) {
		name, _ := x.(string)
		wanted = append(wanted, name)
	}
	if extended := r.list("ExtendedStatistics", 10); len(extended) > 0 && *r.err == nil {
		*r.err = invalid("ExtendedStatistics: percentiles are not stored; want Statistics with SampleCount, Average, Sum, Minimum or Maximum.")
	}
	if *r.err != nil {
		return nil, *r.err
	}
	if len(wanted) == 0 {
		return nil, &refusal{codeMissing, "Must specify the parameter Statistics."}
	}
	for _, name := range wanted {
		if err := checkStatistic(name); err != nil {
			return nil, err
		}
	}
	period, err := periodOf(seconds, "The parameter Period")
	if err != nil {
		return nil, err
	}
	if n := (s.to - s.from) / period; n > statisticsMax {
		return nil, &refusal{codeInvalidCombination, fmt.Sprintf("You have requested up to %d datapoints, which exceeds the limit of %d. You may reduce the datapoints requested by increasing Period, or decreasing the time range.", n, statisticsMax)}
	}
	points := []any{}
	for _, n := range d.find(space, metric, dimensions) {
		if unit != "" && unit != unitOf(metric) {
			break
		}
		all, err := d.values(n.key, s, period, true)
		if err != nil {
			return nil, err
		}
		for _, v := range all {
			point := fields{{"Timestamp", timeOf(v.minute)}}
			for _, name := range wanted {
				point = append(point, field{name, statistics[name](v.Stat)})
			}
			points = append(points, append(point, field{"Unit", unitOf(metric)}))
		}
	}
	return fields{{"Label", metric}, {"Datapoints", points}}, nil
}

func (d *Door) listMetrics(r reader) (fields, error) {
	space, metric, dimensions, token := r.text("Namespace"), r.text("MetricName"), dimensionsOf(r, false), r.text("NextToken")
	active := r.text("RecentlyActive")
	if *r.err != nil {
		return nil, *r.err
	}
	if active != "" && active != "PT3H" {
		return nil, invalid("The parameter RecentlyActive is %s; want PT3H.", clip(active))
	}
	after := ""
	if token != "" {
		raw, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			return nil, &refusal{codeInvalidToken, "The parameter NextToken was not issued by this service."}
		}
		after = string(raw)
	}
	since := d.config.Store.Last() - recent
	if active != "" {
		since = d.config.Store.Last() - 180
	}
	fresh := map[series.Key]bool{}
	d.config.Store.Keys(since, func(k series.Key) bool { fresh[k] = true; return true })
	listed, next := []any{}, ""
	last := ""
	for _, n := range d.all() {
		if !fresh[n.key] || string(n.key) <= after || space != "" && space != Namespace || metric != "" && metric != n.metric || !hasAll(&n, dimensions) {
			continue
		}
		if len(listed) == listMax {
			next = base64.RawURLEncoding.EncodeToString([]byte(last))
			break
		}
		last = string(n.key)
		listed = append(listed, fields{{"Namespace", Namespace}, {"MetricName", n.metric}, {"Dimensions", asFields(n.dimensions)}})
	}
	out := fields{{"Metrics", listed}}
	if next != "" {
		out = append(out, field{"NextToken", next})
	}
	return out, nil
}

func hasAll(n *named, wanted []series.Dimension) bool {
	for _, w := range wanted {
		if !slices.ContainsFunc(n.dimensions, func(d series.Dimension) bool { return d.Name == w.Name && (w.Value == "" || d.Value == w.Value) }) {
			return false
		}
	}
	return true
}

func asFields(dimensions []series.Dimension) []any {
	all := []any{}
	for _, d := range dimensions {
		all = append(all, fields{{"Name", d.Name}, {"Value", d.Value}})
	}
	return all
}

// place is the start of the next page of GetMetricData. Later samples do not move it.
type place struct {
	until         int64 // the newest minute of the first page
	result, point int
}

func (p place) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%d.%d", p.until, p.result, p.point))
}

func readPlace(token string) (p place, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		_, err = fmt.Sscanf(string(raw), "%d.%d.%d", &p.until, &p.result, &p.point)
	}
	if err != nil || p.until < 0 || p.result < 0 || p.point < 0 {
		return p, &refusal{codeInvalidToken, "The parameter NextToken was not issued by this service."}
	}
	return p, nil
}

func (d *Door) getMetricData(r reader) (fields, error) {
	s := readSpan(r)
	ascending, most, token := r.text("ScanBy"), r.number("MaxDatapoints", dataMax), r.text("NextToken")
	structures := r.structures("MetricDataQueries", queriesMax)
	if len(structures) == 0 && *r.err == nil {
		*r.err = &refusal{codeMissing, "The parameter MetricDataQueries is required."}
	}
	var queries []query
	ids, number := map[string]bool{}, 0
	all := sync.OnceValue(d.all)
	for _, x := range structures {
		q, show, err := d.readQuery(x, all)
		if err == nil {
			err = *r.err
		}
		if err == nil && ids[q.id] {
			err = invalid("Two queries have the Id %s; want different ones.", clip(q.id))
		}
		if err != nil {
			return nil, err
		}
		ids[q.id] = true
		if number += len(q.series); number > seriesMax {
			return nil, invalid("The queries select more than %d metrics; ask for fewer at a time.", seriesMax)
		}
		if show {
			queries = append(queries, q)
		}
	}
	if *r.err != nil {
		return nil, *r.err
	}
	if ascending != "" && ascending != "TimestampAscending" && ascending != "TimestampDescending" {
		return nil, invalid("The parameter ScanBy is %s; want TimestampAscending or TimestampDescending.", clip(ascending))
	}
	if most < 1 || most > dataMax {
		return nil, invalid("The parameter MaxDatapoints is %d; want 1 to %d.", most, dataMax)
	}
	begin := place{until: d.config.Store.Last() + 1}
	if token != "" {
		var err error
		if begin, err = readPlace(token); err != nil {
			return nil, err
		}
	}
	s.to = min(s.to, begin.until)
	return d.results(queries, s, begin, int(most), ascending == "TimestampAscending")
}

// results answers the queries from a place on, with at most that many data points.
func (d *Door) results(queries []query, s span, begin place, most int, ascending bool) (fields, error) {
	results, number, left := []any{}, 0, most
	for i := range queries {
		q := &queries[i]
		for j := range q.series {
			n := &q.series[j]
			if number++; number <= begin.result {
				continue
			}
			all, err := d.values(n.key, s, q.period, false)
			if err != nil {
				return nil, err
			}
			if !ascending {
				slices.Reverse(all)
			}
			if number == begin.result+1 {
				all = all[min(begin.point, len(all)):]
			}
			if len(all) > left {
				next := place{begin.until, number - 1, left}
				if number == begin.result+1 {
					next.point += begin.point
				}
				if left > 0 {
					results = append(results, resultOf(q, q.labelOf(n), all[:left], "PartialData"))
				}
				return fields{{"MetricDataResults", results}, {"NextToken", next.String()}}, nil
			}
			left -= len(all)
			results = append(results, resultOf(q, q.labelOf(n), all, "Complete"))
		}
	}
	return fields{{"MetricDataResults", results}, {"Messages", []any{}}}, nil
}

func resultOf(q *query, label string, all []value, status string) fields {
	times, values := make([]any, len(all)), make([]any, len(all))
	for i, v := range all {
		times[i], values[i] = timeOf(v.minute), statistics[q.stat](v.Stat)
	}
	return fields{{"Id", q.id}, {"Label", label}, {"Timestamps", times}, {"Values", values}, {"StatusCode", status}}
}

// readQuery reads a MetricDataQuery. show reports whether the caller requested its result.
func (d *Door) readQuery(r reader, all func() []named) (q query, show bool, err error) {
	id, label, text, period := r.required("Id"), r.text("Label"), r.text("Expression"), r.number("Period", 0)
	show = r.yes("ReturnData", true)
	if *r.err != nil {
		return q, show, *r.err
	}
	if text != "" {
		if q, err = searchFor(text, all); err != nil {
			return q, show, err
		}
		if q.period == 0 || period != 0 {
			if q.period, err = periodOf(period, "The parameter Period"); err != nil {
				return q, show, err
			}
		}
	} else {
		stat := r.structure("MetricStat")
		metric := stat.structure("Metric")
		space, name, dimensions := metric.required("Namespace"), metric.required("MetricName"), dimensionsOf(metric, true)
		q.stat, q.unit = stat.required("Stat"), stat.text("Unit")
		seconds := stat.number("Period", period)
		if *r.err != nil {
			return q, show, *r.err
		}
		if q.period, err = periodOf(seconds, "The parameter Period"); err != nil {
			return q, show, err
		}
		if q.unit == "" || q.unit == unitOf(name) {
			q.series = d.find(space, name, dimensions)
		}
		if len(q.series) == 0 { // the result of an unknown metric is empty
			q.series = []named{{metric: name, dimensions: dimensions}}
		}
	}
	q.id, q.label = id, label
	return q, show, checkStatistic(q.stat)
}
