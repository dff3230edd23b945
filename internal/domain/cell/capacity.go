package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
)

// managedFleets is hosting as capacity sees it.
type managedFleets struct{ *hosting.Tx }

var _ capacity.Fleets = managedFleets{}

// Measure counts what scaling policies look at.
func (m managedFleets) Measure(fleetID, location string, now domain.Time) capacity.Sample {
	hosts, games := m.Fleets.SiteCounts(fleetID, location), m.Sessions.Utilization(fleetID, location)
	x := capacity.Sample{
		At: now, ActivatingGameSessions: games.Activating, ActiveGameSessions: games.GameSessions - games.Activating - games.Terminating,
		AvailableGameSessions: hosts.Of(fleet.Free), ConcurrentActivatableGameSessions: hosts.Idle, UnhealthyProcesses: hosts.Of(fleet.Sick),
		CurrentPlayerSessions: games.PlayersReserved + games.PlayersActive, AvailablePlayerSessions: games.SeatsMax - games.SeatsHeld,
	}
	m.Fleets.ComputesIn(fleetID, location, 0, "", func(_ fleet.ComputeRef, c *fleet.Compute) bool {
		if c.Ready > 0 {
			x.ActiveInstances++
			if c.Hosting == 0 {
				x.IdleInstances++
			}
		}
		return true
	})
	waiting, since := m.Placements.FirstChoice(placement.Place{Fleet: fleetID, Location: location})
	if x.QueueDepth = waiting; waiting > 0 {
		x.WaitTime = now.Sub(since).Seconds()
	}
	return x
}
