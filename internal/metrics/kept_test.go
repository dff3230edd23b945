package metrics

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/series"
)

func TestKeeper(t *testing.T) {
	d, _ := door(t, true)
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "muster_calls_total"}, []string{"door", "operation", "outcome"})
	commits := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "muster_commit_seconds"})
	d.Register(calls, commits)
	calls.WithLabelValues("api", "ListFleets", "ok").Add(3)
	calls.WithLabelValues("scripts", "join", "ok").Add(4)
	calls.WithLabelValues("scripts", "join", "failed").Add(1)
	commits.Observe(1)
	commits.Observe(2)
	k := d.Keeper()
	ok := series.MakeKey("muster_calls_total", series.Dimension{Name: "outcome", Value: "ok"})
	failed := series.MakeKey("muster_calls_total", series.Dimension{Name: "door", Value: "scripts"}, series.Dimension{Name: "operation", Value: "join"}, series.Dimension{Name: "outcome", Value: "failed"})
	took, tickets := series.MakeKey("muster_commit_seconds"), series.MakeKey("muster_matchmaking_tickets")
	read := func() (map[series.Key]series.Stat, func()) {
		points, undo := k.Points()
		all := map[series.Key]series.Stat{}
		for _, p := range points {
			all[p.Key] = p.Stat
		}
		return all, undo
	}
	first, undo := read()
	want := map[series.Key]series.Stat{ok: series.Of(7), failed: series.Of(1), took: {Count: 2, Sum: 3, Min: 1.5, Max: 1.5}, tickets: series.Of(7)}
	for key, stat := range want {
		if first[key] != stat {
			t.Errorf("%q: got %v, want %v", key, first[key], stat)
		}
	}
	undo() // the minute was not written: the next one has its counts, too
	calls.WithLabelValues("api", "ListFleets", "ok").Add(1)
	if second, _ := read(); second[ok] != series.Of(8) || second[took].Count != 2 {
		t.Errorf("after a minute that was not written: %v", second)
	}
	if third, _ := read(); third[ok].Count != 0 || third[took].Count != 0 || third[tickets] != series.Of(7) {
		t.Errorf("in a minute without calls: %v", third)
	}
}

// unsteady is a counter that cannot always be read, such as those of the operating system while the process has no descriptor left.
type unsteady struct {
	prometheus.Counter
	fails bool
}

func (u *unsteady) Collect(to chan<- prometheus.Metric) {
	if u.fails {
		to <- prometheus.NewInvalidMetric(u.Desc(), errors.New("too many open files"))
		return
	}
	u.Counter.Collect(to)
}

// A counter that could not be read in one minute continues from its last value. It does not add everything since the start to one minute.
func TestKeeperMissesACounter(t *testing.T) {
	d, _ := door(t, true)
	cpu := &unsteady{Counter: prometheus.NewCounter(prometheus.CounterOpts{Name: "process_cpu_seconds_total"})}
	d.Register(cpu)
	k := d.Keeper()
	key := series.MakeKey("process_cpu_seconds_total")
	read := func() series.Stat {
		points, _ := k.Points()
		for _, p := range points {
			if p.Key == key {
				return p.Stat
			}
		}
		return series.Stat{}
	}
	cpu.Add(1000)
	read()
	cpu.fails = true
	cpu.Add(2)
	if got := read(); got.Count != 0 {
		t.Errorf("while it cannot be read: %v", got)
	}
	cpu.fails = false
	cpu.Add(3)
	if got := read(); got != series.Of(5) {
		t.Errorf("afterwards: %v, want 5, what was added since it was last read", got)
	}
}
