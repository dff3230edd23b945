package playerapi

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
)

// numbers is what the door counts: how long commits take, what is refused, and how streams begin and end.
type numbers struct {
	commit  prometheus.Histogram
	refused *prometheus.CounterVec
	cancels *prometheus.CounterVec
	begun   *prometheus.CounterVec
	closed  *prometheus.CounterVec
	open    prometheus.Gauge
}

func newNumbers() *numbers {
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "muster_flow_" + name, Help: help}, labels)
	}
	return &numbers{
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "muster_flow_commit_seconds", Help: "From a call's command to its durable commit.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
		refused: counters("refused_calls_total", "Commands of calls that were refused.", "code"),
		cancels: counters("cancels_total", "Calls of LeaveMatchmaking: which of the cancel and the match came first.", "outcome"),
		begun:   counters("streams_begun_total", "Event streams that were attached: with the events since, or with a snapshot.", "resume"),
		closed:  counters("streams_closed_total", "Event streams that the service closed.", "code"),
		open:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "muster_flow_streams", Help: "Event streams that are attached."}),
	}
}

func (n *numbers) collectors() []prometheus.Collector {
	return []prometheus.Collector{n.commit, n.refused, n.cancels, n.begun, n.closed, n.open}
}

// answered counts the outcome of a command.
func (n *numbers) answered(cmd cell.Command, err error, took time.Duration) {
	outcome := "cancelled"
	if err == nil {
		n.commit.Observe(took.Seconds())
	} else {
		code := string(flow.CodeOf(err))
		n.refused.WithLabelValues(code).Inc()
		outcome = "refused"
		if flow.CodeOf(err) == flow.AlreadyMatched {
			outcome = "matched"
		}
	}
	if _, ok := cmd.(*cell.LeaveMatchmaking); ok {
		n.cancels.WithLabelValues(outcome).Inc()
	}
}

func (n *numbers) streamClosed(code uint16) { n.closed.WithLabelValues(strconv.Itoa(int(code))).Inc() }

// Collectors are the numbers of this door, for the door of those who watch.
func (d *Door) Collectors() []prometheus.Collector {
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "muster_flow_" + name, Help: help}, func() float64 { return float64(value()) })
	}
	return append(d.numbers.collectors(), d.feeds,
		gauge("logins_waiting", "Players who have a place in the line of logins.", d.logins.waiting),
		gauge("rate_buckets", "Callers whose rate of calls is remembered.", d.buckets.count))
}
