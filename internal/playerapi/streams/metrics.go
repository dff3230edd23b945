package streams

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/playerapi/events"
)

// streamMetrics counts how streams begin and end.
type streamMetrics struct {
	begun  *prometheus.CounterVec
	closed *prometheus.CounterVec
	open   prometheus.Gauge
}

func newStreamMetrics() *streamMetrics {
	m := &streamMetrics{
		begun: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_flow_streams_begun_total", Help: "Event streams that were attached: with the events since, or with a snapshot.",
		}, []string{"resume"}),
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_flow_streams_closed_total", Help: "Event streams that the service closed.",
		}, []string{"code"}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{Name: "muster_flow_streams", Help: "Event streams that are attached."}),
	}
	for _, resume := range []string{events.ResumeReplay, events.ResumeSnapshot} {
		m.begun.WithLabelValues(resume)
	}
	return m
}

func (m *streamMetrics) ended(code uint16) { m.closed.WithLabelValues(strconv.Itoa(int(code))).Inc() }

// Collectors returns the metrics of the streams.
func (x *Streams) Collectors() []prometheus.Collector {
	return []prometheus.Collector{x.metrics.begun, x.metrics.closed, x.metrics.open}
}
