package metrics

import (
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/series"
)

// Kept is a metric of Muster itself that is stored together with the metrics of games. Its series have the name of the family, and the labels in By as dimensions. Values that differ
// in other labels are added up.
type Kept struct {
	Family string
	By     []string
	Gauge  bool   // otherwise a counter or histogram; a histogram stores the samples of the minute: their number, their sum, and their average as minimum and maximum
	Only   string // the only outcome that counts; empty: all
}

// KeptTable lists all such metrics.
var KeptTable = []Kept{
	{Family: "muster_healthy", Gauge: true},
	{Family: "muster_calls_total", By: []string{"outcome"}},
	{Family: "muster_calls_total", By: []string{"door", "operation", "outcome"}, Only: "failed"},
	{Family: "muster_call_seconds", By: []string{"door"}},
	{Family: "muster_call_seconds", By: []string{"door", "operation"}},
	{Family: "muster_commit_seconds"},
	{Family: "muster_commands_committed_total"},
	{Family: "muster_commands_waiting", Gauge: true},
	{Family: "muster_journal_append_seconds"},
	{Family: "muster_journal_bytes_total"},
	{Family: "muster_journal_unsaved_bytes", Gauge: true},
	{Family: "muster_snapshot_seconds"},
	{Family: "muster_snapshots_failed_total"},
	{Family: "muster_archive_put_seconds"},
	{Family: "muster_archive_records_total"},
	{Family: "muster_archive_refused_total"},
	{Family: "muster_connections", By: []string{"door"}, Gauge: true},
	{Family: "muster_connections_refused_total"},
	{Family: "muster_failed_signins_total"},
	{Family: "muster_panics_total"},
	{Family: "muster_matchmaking_tickets", Gauge: true},
	{Family: "muster_matchmaking_passes_total"},
	{Family: "muster_matchmaking_passes_cut_short_total"},
	{Family: "process_cpu_seconds_total"},
	{Family: "process_resident_memory_bytes", Gauge: true},
	{Family: "go_memstats_heap_inuse_bytes", Gauge: true},
	{Family: "go_goroutines", Gauge: true},
	{Family: "process_open_fds", Gauge: true},
}

// keptSeriesMax bounds these series. It is not reached, because doors and operations are few and named by the program. Values beyond it are dropped.
const keptSeriesMax = 2000

// Keeper reads the table's metrics once a minute. One goroutine uses it.
type Keeper struct {
	door *Door
	was  map[series.Key]series.Stat // of counters and histograms: the part that finished minutes contain
}

// Keeper makes a Keeper. It begins at 0, as the counters do when the program starts.
func (d *Door) Keeper() *Keeper { return &Keeper{d, map[series.Key]series.Stat{}} }

// Points returns the points of this minute for the series, and marks them as stored. undo reverts that.
func (k *Keeper) Points() (points []series.Point, undo func()) {
	sums := map[series.Key]series.Stat{}
	gauges := map[series.Key]bool{}
	families, _ := k.door.registry.Gather() // a family that cannot be read is omitted; /metrics logs the error
	for _, f := range families {
		for _, kept := range KeptTable {
			if kept.Family != f.GetName() {
				continue
			}
			for _, m := range f.GetMetric() {
				labels := map[string]string{}
				for _, l := range m.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				if kept.Only != "" && labels["outcome"] != kept.Only {
					continue
				}
				key := kept.key(labels)
				sum, known := sums[key]
				if !known && len(sums) >= keptSeriesMax {
					continue
				}
				sum.Sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
				sum.Count += float64(m.GetHistogram().GetSampleCount())
				sums[key], gauges[key] = sum, kept.Gauge
			}
		}
	}
	was := k.was
	k.was = maps.Clone(was) // with those of a family that is omitted now: its next value would otherwise count from the start of the program
	for key, sum := range sums {
		if gauges[key] {
			points = append(points, series.Point{Key: key, Stat: series.Of(sum.Sum)})
			continue
		}
		k.was[key] = sum
		before := was[key]
		n := sum.Count - before.Count
		more := sum.Sum - before.Sum
		switch {
		case n > 0: // a histogram
			points = append(points, series.Point{Key: key, Stat: series.Stat{Count: n, Sum: more, Min: more / n, Max: more / n}})
		case more > 0:
			points = append(points, series.Point{Key: key, Stat: series.Of(more)})
		}
	}
	slices.SortFunc(points, func(a, b series.Point) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return points, func() { k.was = was }
}

func (x *Kept) key(labels map[string]string) series.Key {
	var dims []series.Dimension
	for _, name := range x.By {
		dims = append(dims, series.Dimension{Name: name, Value: labels[name]})
	}
	return series.MakeKey(x.Family, dims...)
}
