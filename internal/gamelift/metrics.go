package gamelift

import "github.com/prometheus/client_golang/prometheus"

var (
	poolTaken = prometheus.NewDesc("muster_api_pool_taken",
		"What requests hold now: working and working_clients in requests; arriving, decoded and decoded_clients in bytes.", []string{"pool"}, nil)
	poolMost    = prometheus.NewDesc("muster_api_pool_limit", "How much of it there is.", []string{"pool"}, nil)
	poolRefused = prometheus.NewDesc("muster_api_pool_refused_total", "Requests that found no room in it, or that had used up their share.", []string{"pool"}, nil)
	rateRefused = prometheus.NewDesc("muster_api_client_rate_refused_total",
		"Requests with keys of the role client beyond the rate of their key or address.", []string{"by"}, nil)
)

// Describe is of prometheus.Collector.
func (h *Handler) Describe(to chan<- *prometheus.Desc) {
	to <- poolTaken
	to <- poolMost
	to <- poolRefused
	to <- rateRefused
}

// Collect is of prometheus.Collector.
func (h *Handler) Collect(to chan<- prometheus.Metric) {
	for name, p := range h.admission.pools() {
		to <- prometheus.MustNewConstMetric(poolTaken, prometheus.GaugeValue, float64(p.Taken()), name)
		to <- prometheus.MustNewConstMetric(poolMost, prometheus.GaugeValue, float64(p.Most()), name)
		to <- prometheus.MustNewConstMetric(poolRefused, prometheus.CounterValue, float64(p.Refused()), name)
	}
	to <- prometheus.MustNewConstMetric(rateRefused, prometheus.CounterValue, float64(h.clients.keys.Refused()), "key")
	to <- prometheus.MustNewConstMetric(rateRefused, prometheus.CounterValue, float64(h.clients.addresses.Refused()), "address")
}
