package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/engine"
)

// placesMax bounds the locations of fleets that have series of their own: those of the oldest fleets. All others are added up under
// otherPlace, so that an installation with ten thousand fleets does not have a hundred thousand series.
const placesMax = 200

// otherPlace is both labels of the places without series of their own. No fleet id and no custom location has this name.
const otherPlace = "other"

func ofPlace(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("muster_"+name, help, append([]string{"fleet_id", "location"}, more...), nil)
}

var (
	gameSessions       = ofPlace("game_sessions", "Game sessions that have not ended.", "status")
	playerSessions     = ofPlace("player_sessions", "Player sessions that have not ended.", "status")
	slots              = ofPlace("player_slots", "Player slots of the game sessions that have not ended.")
	slotsTaken         = ofPlace("player_slots_taken", "Seats that are reserved, in use, or kept for a player's return.")
	processes          = ofPlace("server_processes", "Server processes that have not ended. INITIALIZED ones have not called ProcessReady.", "status")
	healthyProcesses   = ofPlace("server_processes_healthy", "ACTIVE server processes whose last health report was good.")
	hostingProcesses   = ofPlace("server_processes_hosting", "Server processes that host a game session.")
	availableProcesses = ofPlace("server_processes_available", "Server processes that could take a game session now.")
	computes           = ofPlace("computes", "Registered computes.")
	hostingComputes    = ofPlace("computes_hosting", "Computes with at least one game session.")
	placeMetrics       = []*prometheus.Desc{
		gameSessions, playerSessions, slots, slotsTaken, processes, healthyProcesses, hostingProcesses, availableProcesses, computes, hostingComputes,
	}
)

// Places collects the metrics of fleets by location. It reads counters in the state, and never counts records.
func Places(e *engine.Engine) prometheus.Collector { return places{e} }

type places struct{ engine *engine.Engine }

// Describe implements prometheus.Collector.
func (places) Describe(to chan<- *prometheus.Desc) {
	for _, d := range placeMetrics {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (p places) Collect(to chan<- prometheus.Metric) {
	var all []hosting.PlaceCounts
	_ = p.engine.ReadHere(context.Background(), func(v *cell.View) error { // the values need not be durable, so it cannot fail
		named, rest, more := v.PlaceCounts(placesMax)
		if all = named; more {
			rest.Fleet, rest.Location = otherPlace, otherPlace
			all = append(all, rest)
		}
		return nil
	})
	for i := range all {
		collectPlace(to, &all[i])
	}
}

func collectPlace(to chan<- prometheus.Metric, x *hosting.PlaceCounts) {
	gauge := func(d *prometheus.Desc, value int32, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), append([]string{x.Fleet, x.Location}, labels...)...)
	}
	s, h := &x.Sessions, &x.Hosts
	gauge(gameSessions, s.Activating, "ACTIVATING")
	gauge(gameSessions, s.GameSessions-s.Activating-s.Terminating, "ACTIVE")
	gauge(gameSessions, s.Terminating, "TERMINATING")
	gauge(playerSessions, s.PlayersReserved, "RESERVED")
	gauge(playerSessions, s.PlayersActive, "ACTIVE")
	gauge(slots, s.SeatsMax)
	gauge(slotsTaken, s.SeatsHeld)
	gauge(processes, h.Running()-h.Processes, "INITIALIZED")
	gauge(processes, h.Processes, "ACTIVE")
	gauge(healthyProcesses, h.Healthy)
	gauge(hostingProcesses, h.Of(fleet.Hosting))
	gauge(availableProcesses, h.Idle)
	gauge(computes, h.Computes)
	gauge(hostingComputes, h.ComputesWithGame)
}
