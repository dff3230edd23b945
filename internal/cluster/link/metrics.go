package link

import "github.com/prometheus/client_golang/prometheus"

var (
	openDesc    = prometheus.NewDesc("muster_cluster_connections", "Open connections to other nodes of the cluster, by protocol.", []string{"protocol"}, nil)
	refusedDesc = prometheus.NewDesc("muster_cluster_connections_refused_total", "Connections to the cluster's port that were refused, by reason.", []string{"reason"}, nil)
)

// Describe implements prometheus.Collector.
func (l *Link) Describe(to chan<- *prometheus.Desc) {
	to <- openDesc
	to <- refusedDesc
}

// Collect implements prometheus.Collector.
func (l *Link) Collect(to chan<- prometheus.Metric) {
	open := map[Protocol]int{Raft: 0, Node: 0, HTTP: 0}
	l.mu.Lock()
	for c := range l.conns {
		if c.node != "" {
			open[c.protocol]++
		}
	}
	l.mu.Unlock()
	for p, n := range open {
		to <- prometheus.MustNewConstMetric(openDesc, prometheus.GaugeValue, float64(n), string(p))
	}
	for why := range refusals {
		to <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(l.refused[why].Load()), refusalNames[why])
	}
}
