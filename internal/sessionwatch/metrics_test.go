package sessionwatch

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Counters with known labels exist before their first event, which Prometheus would not see as an increase otherwise.
func TestCountersBeginAtZero(t *testing.T) {
	m := newMetrics()
	for name, c := range map[string]struct {
		of   prometheus.Collector
		want int
	}{"processes": {m.processes, 8}, "game sessions": {m.ended, 8}, "placements": {m.placements, 4}, "refusals": {m.refused, 3}} {
		if n := testutil.CollectAndCount(c.of); n != c.want {
			t.Errorf("%s: %d counters, want %d", name, n, c.want)
		}
	}
}
