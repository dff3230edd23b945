package sessionwatch

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// lacksCapacity are the reasons of refusals that are logged.
var lacksCapacity = []domain.Reason{domain.NoCapacity, domain.LimitExceeded, domain.WrongFleetStatus}

// metrics count committed events. They begin at 0 at every start, as Prometheus expects.
type metrics struct {
	started    prometheus.Counter
	linksLost  prometheus.Counter
	processes  *prometheus.CounterVec
	created    prometheus.Counter
	ended      *prometheus.CounterVec
	placements *prometheus.CounterVec
	refused    *prometheus.CounterVec
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_" + name, Help: help})
	}
	counters := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "muster_" + name, Help: help}, []string{label})
	}
	m := &metrics{
		started:    counter("server_processes_started_total", "Server processes that connected, reconnections excluded."),
		linksLost:  counter("server_process_disconnections_total", "Times that the connection of a server process was lost; it may come back."),
		processes:  counters("server_processes_ended_total", "Server processes that ended, by reason.", "reason"),
		created:    counter("game_sessions_created_total", "Game sessions that were given to a server process."),
		ended:      counters("game_sessions_ended_total", "Game sessions that ended, by reason.", "reason"),
		placements: counters("placements_ended_total", "Placements that ended, by status.", "status"),
		refused:    counters("game_sessions_refused_total", "Requests for a game session that were refused, by reason.", "reason"),
	}
	for r := fleet.EndedNormally; r <= fleet.EndedActivationLate; r++ {
		m.processes.WithLabelValues(r.String())
	}
	for c := session.EndedByServer; c <= session.EndedWithPlacement; c++ {
		m.ended.WithLabelValues(c.String())
	}
	for s := placement.Fulfilled; s <= placement.Failed; s++ {
		m.placements.WithLabelValues(s.String())
	}
	for _, r := range lacksCapacity {
		m.refused.WithLabelValues(r.String())
	}
	return m
}

func (n *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{n.started, n.linksLost, n.processes, n.created, n.ended, n.placements, n.refused}
}
