package operator

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Health describes the node that answers. Its counts are totals since the node's start: two samples give rates.
type Health struct {
	Trouble       string  `json:"trouble,omitempty"` // why it refuses changes
	Calls         uint64  `json:"calls"`             // by outcome: all outcomes
	Refused       uint64  `json:"refused"`
	Throttled     uint64  `json:"throttled"`
	Failed        uint64  `json:"failed"`
	Commits       uint64  `json:"commits"` // groups of commands
	CommitSeconds float64 `json:"commitSeconds"`
	CommandsWait  int     `json:"commandsWait"` // currently waiting
}

// health reads the counters of calls and commits.
func (d *Door) health() (x Health) {
	if short := d.engine.Short(); short != nil {
		x.Trouble = short.Error()
	}
	x.CommandsWait, _ = d.engine.Waiting()
	families, err := d.counters.Gather()
	if err != nil {
		d.log.Warn("counters of the service cannot be read: the overview is shown without them", "error", err)
		return x
	}
	for _, f := range families {
		switch f.GetName() {
		case "muster_calls_total":
			x.addCalls(f)
		case "muster_commit_seconds":
			for _, m := range f.GetMetric() {
				x.Commits, x.CommitSeconds = m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum()
			}
		}
	}
	return x
}

func (x *Health) addCalls(f *dto.MetricFamily) {
	for _, m := range f.GetMetric() {
		n := uint64(m.GetCounter().GetValue())
		x.Calls += n
		for _, l := range m.GetLabel() {
			if l.GetName() != "outcome" {
				continue
			}
			switch l.GetValue() {
			case "refused":
				x.Refused += n
			case "throttled":
				x.Throttled += n
			case "failed":
				x.Failed += n
			}
		}
	}
}

// countersOf returns the service's counters that Health contains.
func countersOf(c *Config) prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	registry.MustRegister(c.Engine)
	if c.Calls != nil {
		registry.MustRegister(c.Calls)
	}
	return registry
}
