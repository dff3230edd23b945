package playerhooks

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count the answers.
type metrics struct {
	answers *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func newMetrics() *metrics {
	return &metrics{
		prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_flow_hook_answers_total",
			Help: "Requests to the studio's hooks by outcome: ALLOWED, DENIED, SILENT, UNUSABLE if the answer was not valid, or SPARED while requests to the receiver are paused.",
		}, []string{"hook", "outcome"}),
		prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "muster_flow_hook_seconds", Help: "Time from a request to a hook to its answer, or to the end of the wait.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10},
		}, []string{"hook"}),
	}
}

func (n *metrics) note(hook Name, began time.Time, allowed bool, err error) {
	outcome := "ALLOWED"
	switch {
	case errors.Is(err, errCircuitOpen):
		outcome = "SPARED"
	case errors.Is(err, context.Canceled):
		return // the player's client has gone
	case isUnusable(err):
		outcome = "UNUSABLE"
	case err != nil:
		outcome = "SILENT"
	case !allowed:
		outcome = "DENIED"
	}
	n.answers.WithLabelValues(string(hook), outcome).Inc()
	if outcome != "SPARED" {
		n.seconds.WithLabelValues(string(hook)).Observe(time.Since(began).Seconds())
	}
}

// Collectors returns the metrics of the hooks.
func (h *Hooks) Collectors() []prometheus.Collector {
	if h == nil {
		return nil
	}
	return []prometheus.Collector{h.metrics.answers, h.metrics.seconds}
}
