package gamelift

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/smithy-go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/domain/cell"
)

var (
	poolTaken = prometheus.NewDesc("muster_api_pool_taken",
		"What requests hold now: working and working_clients in requests; arriving, decoded and decoded_clients in bytes.", []string{"pool"}, nil)
	poolMost    = prometheus.NewDesc("muster_api_pool_limit", "Size of the pool of requests, in the units of muster_api_pool_taken.", []string{"pool"}, nil)
	poolRefused = prometheus.NewDesc("muster_api_pool_refused_total", "Requests that found no room in the pool, or whose caller had used up its share.", []string{"pool"}, nil)
	heldBytes   = prometheus.NewDesc("muster_held_bytes", "Memory of records with data from callers, including those that ended a moment ago.", []string{"kind"}, nil)
	heldMost    = prometheus.NewDesc("muster_held_bytes_limit", "Maximum memory of these records.", []string{"kind"}, nil)
	rateRefused = prometheus.NewDesc("muster_api_client_rate_refused_total",
		"Requests with keys of the role client that exceeded the rate of their key or address.", []string{"by"}, nil)
)

func newRefusals() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "muster_api_refused_total", Help: "API requests that were answered with an error, by its code."}, []string{"code"})
}

// count counts a request at a door by its outcome.
func (h *Handler) count(ctx context.Context, door *callstats.Door, name string, refused smithy.APIError, began time.Time) {
	if refused != nil {
		h.refusals.WithLabelValues(refused.ErrorCode()).Inc()
	}
	door.Done(name, outcomeOf(ctx, refused), began)
}

func outcomeOf(ctx context.Context, refused smithy.APIError) callstats.Outcome {
	switch {
	case refused == nil:
		return callstats.OK
	case refused.ErrorCode() == codeThrottling:
		return callstats.Throttled
	case statusOf(refused.ErrorCode()) >= http.StatusInternalServerError:
		return callstats.Heard(ctx, callstats.Failed)
	}
	return callstats.Refused
}

// Describe implements prometheus.Collector.
func (h *Handler) Describe(to chan<- *prometheus.Desc) {
	to <- poolTaken
	to <- poolMost
	to <- poolRefused
	to <- rateRefused
	to <- heldBytes
	to <- heldMost
	h.refusals.Describe(to)
}

// collectHeld reports nothing once the engine has stopped.
func (h *Handler) collectHeld(to chan<- prometheus.Metric) {
	var held cell.Held
	err := h.service.engine.Read(context.Background(), func(v *cell.View) error {
		held = v.Held()
		return nil
	})
	if err != nil {
		return
	}
	for _, each := range []struct {
		kind      string
		now, most int64
	}{
		{"tickets", held.Tickets, held.TicketsMax}, {"placements", held.Placements, held.PlacementsMax}, {"player_sessions", held.PlayerSessions, held.PlayerSessionsMax},
	} {
		to <- prometheus.MustNewConstMetric(heldBytes, prometheus.GaugeValue, float64(each.now), each.kind)
		to <- prometheus.MustNewConstMetric(heldMost, prometheus.GaugeValue, float64(each.most), each.kind)
	}
}

// Collect implements prometheus.Collector.
func (h *Handler) Collect(to chan<- prometheus.Metric) {
	for name, p := range h.admission.pools() {
		to <- prometheus.MustNewConstMetric(poolTaken, prometheus.GaugeValue, float64(p.Taken()), name)
		to <- prometheus.MustNewConstMetric(poolMost, prometheus.GaugeValue, float64(p.Most()), name)
		to <- prometheus.MustNewConstMetric(poolRefused, prometheus.CounterValue, float64(p.Refused()), name)
	}
	h.collectHeld(to)
	h.refusals.Collect(to)
	to <- prometheus.MustNewConstMetric(rateRefused, prometheus.CounterValue, float64(h.clients.keys.Refused()), "key")
	to <- prometheus.MustNewConstMetric(rateRefused, prometheus.CounterValue, float64(h.clients.addresses.Refused()), "address")
}
