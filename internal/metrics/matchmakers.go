package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/matchmaker"
)

// matchmakers has the metrics of each matchmaking configuration's pool and of the work on it.
type matchmakers struct{ status func() []matchmaker.Status }

// matchmakerMetric is one of these metrics.
type matchmakerMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*matchmaker.Status) float64
}

func ofMatchmaker(name, help string, kind prometheus.ValueType, value func(*matchmaker.Status) float64) matchmakerMetric {
	return matchmakerMetric{prometheus.NewDesc("muster_matchmaking_"+name, help, []string{"matchmaking_configuration"}, nil), kind, value}
}

var matchmakerMetrics = []matchmakerMetric{
	ofMatchmaker("tickets", "Tickets that wait.", prometheus.GaugeValue, func(s *matchmaker.Status) float64 { return float64(s.Tickets) }),
	ofMatchmaker("players", "Players of the tickets that wait.", prometheus.GaugeValue, func(s *matchmaker.Status) float64 { return float64(s.Players) }),
	ofMatchmaker("unmatchable_tickets", "Waiting tickets that no partner and no wait can help.", prometheus.GaugeValue,
		func(s *matchmaker.Status) float64 { return float64(s.Unmatchable) }),
	ofMatchmaker("matched_tickets_total", "Tickets in matches that were proposed.", prometheus.CounterValue, func(s *matchmaker.Status) float64 { return float64(s.Matched) }),
	ofMatchmaker("proposals_total", "Matches that were proposed.", prometheus.CounterValue, func(s *matchmaker.Status) float64 { return float64(s.Proposals) }),
	ofMatchmaker("refused_total", "Commands with proposals that the core did not take.", prometheus.CounterValue, func(s *matchmaker.Status) float64 { return float64(s.Refused) }),
	ofMatchmaker("passes_total", "Passes over the pool.", prometheus.CounterValue, func(s *matchmaker.Status) float64 { return float64(s.Passes) }),
	ofMatchmaker("passes_cut_short_total", "Passes that ended because they had used up their budget; the next one continues.", prometheus.CounterValue,
		func(s *matchmaker.Status) float64 { return float64(s.CutShort) }),
	ofMatchmaker("searches_total", "Tickets around which a match was looked for.", prometheus.CounterValue, func(s *matchmaker.Status) float64 { return float64(s.Searches) }),
	ofMatchmaker("searches_out_of_budget_total", "Searches that ended because they had evaluated as many rules as one may.", prometheus.CounterValue,
		func(s *matchmaker.Status) float64 { return float64(s.Exhausted) }),
	ofMatchmaker("unfinished_searches", "Tickets whose search used up its budget and continues while the matchmaker is idle.", prometheus.GaugeValue,
		func(s *matchmaker.Status) float64 { return float64(s.Unfinished) }),
	ofMatchmaker("continued_searches_total", "Times that a search that had used up its budget continued.", prometheus.CounterValue, func(s *matchmaker.Status) float64 { return float64(s.Continued) }),
	ofMatchmaker("rule_evaluations_total", "Rules evaluated.", prometheus.CounterValue, func(s *matchmaker.Status) float64 { return float64(s.Evaluations) }),
	ofMatchmaker("last_pass_seconds", "How long the latest pass took.", prometheus.GaugeValue, func(s *matchmaker.Status) float64 { return s.PassTook.Seconds() }),
}

var refusedMatches = prometheus.NewDesc("muster_matchmaking_refused_matches_total", "Matches that were proposed and did not come about, by reason.",
	[]string{"matchmaking_configuration", "reason"}, nil)

func (m *matchmakers) Describe(to chan<- *prometheus.Desc) {
	to <- refusedMatches
	for _, x := range matchmakerMetrics {
		to <- x.desc
	}
}

func (m *matchmakers) Collect(to chan<- prometheus.Metric) {
	all := m.status()
	for i := range all {
		for _, x := range matchmakerMetrics {
			to <- prometheus.MustNewConstMetric(x.desc, x.kind, x.value(&all[i]), all[i].Configuration)
		}
		for reason, n := range all[i].RefusedMatches {
			to <- prometheus.MustNewConstMetric(refusedMatches, prometheus.CounterValue, float64(n), all[i].Configuration, reason.String())
		}
	}
}
