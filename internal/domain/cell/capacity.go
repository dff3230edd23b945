package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
)

// managedFleets adapts hosting to capacity's interface.
type managedFleets struct{ *hosting.Tx }

var _ capacity.Fleets = managedFleets{}

// Measure takes the counts that scaling policies use.
func (m managedFleets) Measure(fleetID, location string, now domain.Time) capacity.Sample {
	n := m.PlaceCounts(fleetID, location)
	x := capacity.Sample{
		At: now, ActiveInstances: n.ActiveInstances(), IdleInstances: n.IdleInstances(),
		ActivatingGameSessions: n.Sessions.Activating, ActiveGameSessions: n.ActiveGameSessions(),
		AvailableGameSessions: n.AvailableGameSessions(), ConcurrentActivatableGameSessions: n.ActivatableGameSessions(), UnhealthyProcesses: n.UnhealthyProcesses(),
		CurrentPlayerSessions: n.CurrentPlayerSessions(), AvailablePlayerSessions: n.AvailablePlayerSessions(),
	}
	waiting, since := m.Placements.FirstChoice(placement.Place{Fleet: fleetID, Location: location})
	if x.QueueDepth = waiting; waiting > 0 {
		x.WaitTime = now.Sub(since).Seconds()
	}
	return x
}
