package feeds

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// The feeds' metrics are computed only when they are scraped, so that they cost nothing otherwise.
var (
	serverStreams = prometheus.NewDesc("muster_flow_server_streams", "Streams of game servers, and of the studio's servers that watch their games.", nil, nil)
	eventsWaiting = prometheus.NewDesc("muster_flow_events_waiting", "Players' events that the receiver of a subscription does not have yet.", []string{"subscription"}, nil)
	eventsLapsed  = prometheus.NewDesc("muster_flow_subscription_lapsed", "1 for a subscription that has lapsed: its receiver took no events for too long.", []string{"subscription"}, nil)
	eventsFailing = prometheus.NewDesc("muster_flow_webhook_failures", "Attempts in a row that the webhook of a subscription did not take.", []string{"subscription"}, nil)
)

// Describe implements prometheus.Collector.
func (x *Feeds) Describe(to chan<- *prometheus.Desc) {
	to <- serverStreams
	to <- eventsWaiting
	to <- eventsFailing
	to <- eventsLapsed
}

// Collect implements prometheus.Collector with the present numbers.
func (x *Feeds) Collect(to chan<- prometheus.Metric) {
	x.mu.Lock()
	n := 0
	for _, lines := range x.servers {
		n += len(lines)
	}
	x.mu.Unlock()
	to <- prometheus.MustNewConstMetric(serverStreams, prometheus.GaugeValue, float64(n))
	var all []flow.Subscription
	var head uint64
	if err := x.State.ReadHere(x.ctx, func(v *cell.View) error { all, head = v.Subscriptions(); return nil }); err != nil {
		return // the engine has stopped, which other metrics report
	}
	for _, s := range all {
		id := objects.ID(s.ID)
		lapsed, waiting := 0.0, float64(head-s.Done)
		if s.Lapsed != 0 {
			lapsed, waiting = 1, 0
		}
		to <- prometheus.MustNewConstMetric(eventsLapsed, prometheus.GaugeValue, lapsed, id)
		to <- prometheus.MustNewConstMetric(eventsWaiting, prometheus.GaugeValue, waiting, id)
		if s.URL != "" {
			_, failures, _ := x.Health(s.ID)
			to <- prometheus.MustNewConstMetric(eventsFailing, prometheus.GaugeValue, float64(failures), id)
		}
	}
}
