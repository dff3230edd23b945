package service

import (
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/gamemetrics"
	"github.com/musterhq/muster/internal/series"
)

// metricsDir is the subdirectory of the data directory with the kept metrics. Nothing depends on them, so it may be missing.
const metricsDir = "metrics"

// gauge returns a metric whose value is read at each scrape.
func gauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

// openGameMetrics starts to count and to keep the service's metrics.
func (x *Service) openGameMetrics() (err error) {
	s := x.settings
	if s.MetricsMax > 0 {
		x.kept, err = series.Open(series.Options{
			Dir: filepath.Join(s.Data, metricsDir), Program: "muster serve", BytesMax: int64(s.MetricsMax), SeriesMax: s.MetricsSeries, Log: x.log,
		})
		if err != nil {
			return err
		}
		x.metrics.Register(
			gauge("muster_kept_series", "Series of metrics that are stored on disk.", func() float64 { n, _ := x.kept.Used(); return float64(n) }),
			gauge("muster_kept_series_limit", "Maximum number of stored series of metrics, from --metrics-series.", func() float64 { _, most := x.kept.Limits(); return float64(most) }),
			gauge("muster_kept_series_bytes", "Bytes of the stored metrics in the data directory.", func() float64 { _, n := x.kept.Used(); return float64(n) }),
			gauge("muster_kept_series_bytes_limit", "Maximum size in bytes of the stored metrics, from --metrics-max.", func() float64 { most, _ := x.kept.Limits(); return float64(most) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "muster_kept_points_refused_total", Help: "Values that were not stored because no further series is allowed."},
				func() float64 { return float64(x.kept.Refused()) }),
		)
	}
	x.games = gamemetrics.Start(gamemetrics.Config{Engine: x.engine, Rules: x.matches.RuleEvaluations, Hosts: x.uses.all, Store: x.kept, Beside: x.metrics.Keeper().Points, Short: x.room.Short, Log: x.log})
	x.metrics.Register(x.games)
	return nil
}

// stopWaiting lets the service stop although the disk is full.
func (x *Service) stopWaiting() {
	x.room.stopWaiting()
	if x.kept != nil {
		x.kept.StopWaiting()
	}
}
