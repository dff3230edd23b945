package e2e

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/internal/series"
)

// remember gives a fleet six hours of history, in the form in which the service stores it. The service is down meanwhile.
func (s *service) remember(fleet, location string) {
	s.t.Helper()
	s.stop()
	dir := filepath.Join(s.data, "metrics")
	must(s.t, os.RemoveAll(dir))
	store, err := series.Open(series.Options{Dir: dir, BytesMax: 1 << 30, SeriesMax: 10_000, Log: slog.New(slog.DiscardHandler)})
	must(s.t, err)
	const minutes = 6 * 60
	first := time.Now().Unix()/60 - minutes
	for i := range int64(minutes) {
		wave := func(middle, height, period, late float64) float64 {
			return math.Round(middle + height*math.Sin(2*math.Pi*(float64(i)-late)/period))
		}
		gauges := map[string]float64{
			"ActiveGameSessions": wave(40, 18, 300, 60), "ActivatingGameSessions": wave(2, 2, 41, 0), "AvailableGameSessions": wave(30, -18, 300, 60),
			"ConcurrentActivatableGameSessions": wave(30, -18, 300, 60), "CurrentPlayerSessions": wave(300, 150, 300, 62), "AvailablePlayerSessions": wave(60, 20, 47, 0),
			"ActiveServerProcesses": 72, "HealthyServerProcesses": wave(71, 1, 37, 0), "ActiveInstances": 6, "IdleInstances": wave(1, 1, 90, 0),
			"PercentAvailableGameSessions": wave(42, -22, 300, 60), "PercentHealthyServerProcesses": wave(98, 2, 37, 0), "PercentIdleInstances": wave(16, 16, 90, 0),
		}
		counters := map[string]float64{
			"PlayerSessionActivations": wave(25, 12, 300, 30), "ServerProcessActivations": wave(4, 2, 300, 60), "ServerProcessTerminations": wave(4, 2, 300, 63),
			"ServerProcessAbnormalTerminations": max(0, wave(-2, 3, 113, 0)),
		}
		var points []series.Point
		for _, place := range [][]series.Dimension{{{Name: "FleetId", Value: fleet}}, {{Name: "FleetId", Value: fleet}, {Name: "Location", Value: location}}} {
			for name, value := range gauges {
				points = append(points, series.Point{Key: series.MakeKey(name, place...), Stat: series.Of(value)})
			}
			for name, value := range counters {
				points = append(points, series.Point{Key: series.MakeKey(name, place...), Stat: series.Of(value), Counts: true})
			}
		}
		must(s.t, store.Append(first+i, points))
	}
	must(s.t, store.Close())
	s.start()
}
