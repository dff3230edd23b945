package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/quotas"
)

var (
	quotaHeld  = prometheus.NewDesc("muster_quota_held", "Records that the holders with most of a kind have: access keys, people and machines that signed in elsewhere, and the players of player flow.", []string{"quota", "holder"}, nil)
	quotaLimit = prometheus.NewDesc("muster_quota_limit", "How many they may have.", []string{"quota", "holder"}, nil)
)

// holdersShown is the number of holders of each quota that have series: those with the most records. Many keys that create records thus cannot fill a store of metrics.
const holdersShown = 3

// Quotas collects the record counts of the holders with the most records.
func Quotas(e *engine.Engine, names *quotas.Desk) prometheus.Collector { return holders{e, names} }

type holders struct {
	engine *engine.Engine
	names  *quotas.Desk
}

// Describe implements prometheus.Collector.
func (holders) Describe(to chan<- *prometheus.Desc) {
	to <- quotaHeld
	to <- quotaLimit
}

// Collect implements prometheus.Collector.
func (h holders) Collect(to chan<- prometheus.Metric) {
	_ = h.engine.ReadHere(context.Background(), func(v *cell.View) error { // the values need not be durable, so it cannot fail
		name := h.names.Namer(v.AccessKeys)
		for _, x := range v.Holdings(holdersShown) {
			for _, by := range x.Highest {
				labels := []string{x.Kind.String(), name(by.Holder)}
				to <- prometheus.MustNewConstMetric(quotaHeld, prometheus.GaugeValue, float64(by.Count), labels...)
				to <- prometheus.MustNewConstMetric(quotaLimit, prometheus.GaugeValue, float64(v.MostOf(&x, by.Holder)), labels...)
			}
		}
		return nil
	})
}
