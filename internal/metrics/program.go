package metrics

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Program collects the metrics of the process itself: the build, the Go runtime, the operating system's figures, and whether the service is healthy.
func Program(release string, health func() error) []prometheus.Collector {
	return []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(release),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "muster_healthy", Help: "1 while the service can do its work; 0 while its store has failed or has no room, as /healthz says.",
		}, func() float64 {
			if health() != nil {
				return 0
			}
			return 1
		}),
	}
}

// buildInfo is 1; its labels describe the build. release is empty for a build from source.
func buildInfo(release string) prometheus.Collector {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		release = cmp.Or(release, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "muster_build_info", Help: "Always 1: version and commit of the program, and the Go version that built it.",
		ConstLabels: prometheus.Labels{"version": release, "revision": revision, "go_version": runtime.Version()},
	}, func() float64 { return 1 })
}
