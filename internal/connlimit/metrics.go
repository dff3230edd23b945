package connlimit

import "github.com/prometheus/client_golang/prometheus"

var (
	openDesc = prometheus.NewDesc("muster_connections", "Open connections at all ports, by what they are used for, and whether they have presented a credential.",
		[]string{"door", "state"}, nil)
	limitDesc   = prometheus.NewDesc("muster_connections_limit", "Maximum number of open connections.", []string{"limit"}, nil)
	refusedDesc = prometheus.NewDesc("muster_connections_refused_total", "New connections and streams that were refused, by the limit that was reached.", []string{"limit"}, nil)
	evictedDesc = prometheus.NewDesc("muster_connections_evicted_total", "Connections that were closed in favour of new ones, by the limit that was reached.", []string{"limit"}, nil)
)

// Describe implements prometheus.Collector.
func (l *Limiter) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{openDesc, limitDesc, refusedDesc, evictedDesc} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (l *Limiter) Collect(to chan<- prometheus.Metric) {
	l.mu.Lock()
	open, unproven, limits := l.doors, l.unproven.Len(), l.limits
	l.mu.Unlock()
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	open[HTTP] -= unproven // nothing else has unproven connections
	gauge(openDesc, unproven, HTTP.String(), "unproven")
	for door := range doors {
		gauge(openDesc, open[door], door.String(), "proven")
		gauge(limitDesc, limits.Doors[door], door.String())
	}
	gauge(limitDesc, limits.Total, reasonNames[byTotal])
	gauge(limitDesc, limits.Unproven, reasonNames[byUnproven])
	gauge(limitDesc, limits.PerAddress, reasonNames[byAddress])
	gauge(limitDesc, limits.PerNetwork, reasonNames[byNetwork])
	for why := range reasons {
		to <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(l.refused[why].Load()), reasonNames[why])
		to <- prometheus.MustNewConstMetric(evictedDesc, prometheus.CounterValue, float64(l.evicted[why].Load()), reasonNames[why])
	}
}

// Stats are numbers of open connections.
type Stats struct{ Open, Unproven int }

// Stats reports the numbers of now.
func (l *Limiter) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{len(l.conns), l.unproven.Len()}
}
