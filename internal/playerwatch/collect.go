package playerwatch

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow/inspection"
)

func described(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("muster_flow_"+name, help, labels, nil)
}

// The results of the latest survey.
var (
	players    = described("players", "Players known to the service, by phase.", "phase")
	presence   = described("players_by_presence", "Players known to the service, by whether their client is connected.", "presence")
	tickets    = described("tickets", "Searches of parties; HELD ones wait for a member who is away.", "queue", "status")
	ages       = described("ticket_age_seconds", "Age of the current searches.", "queue")
	oldest     = described("oldest_ticket_seconds", "Age of the oldest search.", "queue")
	games      = described("games", "Game instances that have not ended.", "queue", "status")
	members    = described("members", "Players in games.", "status")
	violations = described("invariant_violations", "Invariants that the latest survey found violated: defects of the service.")
	violated   = described("invariant_violations_total", "Violations found by all surveys.")
	surveyed   = described("survey_seconds", "Duration of the latest survey, pauses included.")
	lag        = described("deadline_lag_seconds", "How late the next deadline is: 0 unless the service cannot keep up.")
)

// phaseNames distinguish both kinds of players in games.
var phaseNames = map[flow.Phase]string{
	flow.Idle: "IDLE", flow.InParty: "IN_PARTY", flow.Matchmaking: "MATCHMAKING", flow.InGameWithParty: "IN_GAME_WITH_PARTY", flow.InGame: "IN_GAME_WITHOUT_PARTY",
}

// Describe implements prometheus.Collector.
func (w *Watch) Describe(to chan<- *prometheus.Desc) {
	for _, x := range w.counters.collectors() {
		x.Describe(to)
	}
	for _, d := range []*prometheus.Desc{players, presence, tickets, ages, oldest, games, members, violations, violated, surveyed, lag} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (w *Watch) Collect(to chan<- prometheus.Metric) {
	for _, x := range w.counters.collectors() {
		x.Collect(to)
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(lag, w.overdue().Seconds())
	s, took, all := w.snapshot()
	to <- prometheus.MustNewConstMetric(violated, prometheus.CounterValue, float64(all))
	if s == nil {
		return
	}
	gauge(violations, float64(s.Violated))
	gauge(surveyed, took.Seconds())
	for phase, name := range phaseNames {
		gauge(players, float64(s.Players[phase]), name)
	}
	for _, p := range []flow.Presence{flow.Offline, flow.Online, flow.Unknown} {
		gauge(presence, float64(s.Presence[p]), p.String())
	}
	for kind, n := range s.Searches {
		gauge(tickets, float64(n), kind.Queue, kind.Status.String())
	}
	for queue, x := range s.Ages {
		buckets := map[float64]uint64{}
		for i, step := range inspection.SearchAgeSteps {
			buckets[step.Seconds()] = uint64(x.UpTo[i])
		}
		to <- prometheus.MustNewConstHistogram(ages, uint64(x.Count), x.Sum.Seconds(), buckets, queue)
		gauge(oldest, x.Oldest.Seconds(), queue)
	}
	for kind, n := range s.Games {
		gauge(games, float64(n), kind.Queue, kind.Status.String())
	}
	for status, n := range s.Members {
		gauge(members, float64(n), status.String())
	}
}
