package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
)

var (
	recordCount = prometheus.NewDesc("muster_records", "Records in memory by kind. Kinds that begin with fullest are about the owner that has most of something.",
		[]string{"kind"}, nil)
	recordMost   = prometheus.NewDesc("muster_records_limit", "How many records of a kind there may be.", []string{"kind"}, nil)
	waiting      = prometheus.NewDesc("muster_commands_waiting", "Commands that wait to be executed.", nil, nil)
	waitingMost  = prometheus.NewDesc("muster_commands_waiting_limit", "Maximum number of waiting commands; further ones are refused and must be retried.", nil, nil)
	followerLags = prometheus.NewDesc("muster_follower_backlog", "Journal entries that the slowest internal reader has not taken yet.", nil, nil)
)

// Records collects the numbers of records by kind, and their limits.
func Records(e *engine.Engine) prometheus.Collector { return records{e} }

type records struct{ engine *engine.Engine }

// Describe implements prometheus.Collector.
func (records) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{recordCount, recordMost, waiting, waitingMost, followerLags} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (r records) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	var counts []kernel.RecordCount
	_ = r.engine.ReadHere(context.Background(), func(v *cell.View) error { // the values need not be durable, so it cannot fail
		counts = v.RecordCounts()
		return nil
	})
	for _, x := range counts {
		gauge(recordCount, x.Count, x.Kind)
		if x.Most > 0 {
			gauge(recordMost, x.Most, x.Kind)
		}
	}
	now, most := r.engine.Waiting()
	gauge(waiting, now)
	gauge(waitingMost, most)
	gauge(followerLags, r.engine.Backlog())
}
