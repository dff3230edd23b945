package hosting

import "github.com/musterhq/muster/internal/domain/fleet"

// The metrics of a fleet in one location, as defined by the API's documentation. Scaling policies and monitoring share them.

// ActiveInstances returns the number of hosts with ready server processes.
func (n *PlaceCounts) ActiveInstances() int32 { return n.Hosts.ComputesReady }

// IdleInstances returns the number of active instances without a game session.
func (n *PlaceCounts) IdleInstances() int32 { return n.Hosts.ComputesReady - n.Hosts.ComputesWithGame }

// ActiveGameSessions returns the number of game sessions that are ACTIVE.
func (n *PlaceCounts) ActiveGameSessions() int32 { return n.Sessions.Active() }

// AvailableGameSessions returns the number of healthy server processes without a game session.
func (n *PlaceCounts) AvailableGameSessions() int32 { return n.Hosts.Of(fleet.Free) }

// ActivatableGameSessions returns the number of available server processes that may start a game session now.
func (n *PlaceCounts) ActivatableGameSessions() int32 { return n.Hosts.Idle }

// UnhealthyProcesses returns the number of ready but unhealthy server processes.
func (n *PlaceCounts) UnhealthyProcesses() int32 { return n.Hosts.Of(fleet.Sick) }

// CurrentPlayerSessions returns the number of player sessions that are RESERVED or ACTIVE.
func (n *PlaceCounts) CurrentPlayerSessions() int32 {
	return n.Sessions.PlayersReserved + n.Sessions.PlayersActive
}

// AvailablePlayerSessions returns the number of empty player slots of game sessions that are ACTIVE.
func (n *PlaceCounts) AvailablePlayerSessions() int32 { return n.Sessions.SeatsFree }

// Add adds the counts of another place.
func (n *PlaceCounts) Add(x *PlaceCounts) {
	n.Sessions.Add(&x.Sessions)
	n.Hosts.Add(&x.Hosts)
}

// PlaceCounts returns the counts of a fleet in one location.
func (c *State) PlaceCounts(fleetID, location string) PlaceCounts {
	return PlaceCounts{fleetID, location, c.Sessions.Utilization(fleetID, location), c.Fleets.SiteCounts(fleetID, location)}
}
