package sessionapi

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/fair"
)

var (
	placesTaken   = prometheus.NewDesc("muster_session_places_taken", "Requests in progress, bytes of their bodies, calls in progress, watched tickets and open event streams.", []string{"kind"}, nil)
	placesMost    = prometheus.NewDesc("muster_session_places_limit", "Maximum of each kind that muster_session_places_taken counts.", []string{"kind"}, nil)
	placesRefused = prometheus.NewDesc("muster_session_places_refused_total", "Requests and calls that were refused, because no place was free or their key or address had used its share.", []string{"kind"}, nil)
	keptBytes     = prometheus.NewDesc("muster_session_kept_bytes", "Bytes of the events stored for readers and polls.", nil, nil)
)

// Describe implements prometheus.Collector.
func (d *Door) Describe(to chan<- *prometheus.Desc) {
	to <- placesTaken
	to <- placesMost
	to <- placesRefused
	to <- keptBytes
}

// Collect implements prometheus.Collector.
func (d *Door) Collect(to chan<- prometheus.Metric) {
	for kind, s := range map[string]*fair.Shares{"working": &d.working, "body_bytes": &d.bodies, "calls": &d.calls.pending, "watches": &d.calls.watching, "streams": &d.calls.readers} {
		to <- prometheus.MustNewConstMetric(placesTaken, prometheus.GaugeValue, float64(s.Keys.Taken()), kind)
		to <- prometheus.MustNewConstMetric(placesMost, prometheus.GaugeValue, float64(s.Keys.Most()), kind)
		to <- prometheus.MustNewConstMetric(placesRefused, prometheus.CounterValue, float64(s.Keys.Refused()+s.Clients.Refused()), kind)
	}
	d.calls.mu.Lock()
	bytes := d.calls.bytes
	d.calls.mu.Unlock()
	to <- prometheus.MustNewConstMetric(keptBytes, prometheus.GaugeValue, float64(bytes))
}
