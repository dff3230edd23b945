package state

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// commits measures the commands of calls: their duration, and how many are refused.
type commits struct {
	seconds prometheus.Histogram
	refused *prometheus.CounterVec
	cancels *prometheus.CounterVec
}

func newCommits() *commits {
	c := &commits{
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "muster_flow_commit_seconds", Help: "From a call's command to its durable commit.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_flow_refused_calls_total", Help: "Commands of calls that were refused.",
		}, []string{"code"}),
		cancels: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_flow_cancels_total", Help: "Calls of LeaveMatchmaking: which of the cancel and the match came first.",
		}, []string{"outcome"}),
	}
	for _, outcome := range []string{"cancelled", "matched", "refused"} {
		c.cancels.WithLabelValues(outcome)
	}
	return c
}

// Collectors returns the metrics of the calls' commands.
func (s *State) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.commits.seconds, s.commits.refused, s.commits.cancels}
}

// count records the outcome of a command.
func (c *commits) count(cmd kernel.Command, err error, took time.Duration) {
	outcome := "cancelled"
	if err == nil {
		c.seconds.Observe(took.Seconds())
	} else {
		code := flow.CodeOf(err)
		c.refused.WithLabelValues(string(code)).Inc()
		outcome = "refused"
		if code == flow.AlreadyMatched {
			outcome = "matched"
		}
	}
	if _, ok := cmd.(*playerflow.LeaveMatchmaking); ok {
		c.cancels.WithLabelValues(outcome).Inc()
	}
}
