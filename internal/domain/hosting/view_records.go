package hosting

import (
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

// HostingCounts counts the records of the room. A kind that begins with "fullest" counts the records of the owner that has the most,
// because its limit is per owner.
func (v *View) HostingCounts() []kernel.RecordCount {
	f, s, p, most := v.c.Fleets, v.c.Sessions, v.c.Placements, v.c.Config
	var locations, computes, processes int
	for _, x := range f.Fleets.All() {
		locations, computes = max(locations, len(x.Locations)), max(computes, f.ComputeCount(x.ID))
	}
	for _, x := range f.Computes.All() {
		processes = max(processes, int(x.Processes))
	}
	return []kernel.RecordCount{
		{Kind: "fleets", Count: f.Fleets.Len(), Most: most.FleetsMax},
		{Kind: "locations", Count: f.Locations.Len(), Most: most.LocationsMax},
		{Kind: "computes", Count: f.Computes.Len()},
		{Kind: "server_processes", Count: f.Processes.Len()},
		{Kind: "fleet_events", Count: f.Events.Len()},
		{Kind: "creations", Count: f.Creations.Len()},
		{Kind: "aliases", Count: f.Aliases.Len(), Most: most.AliasesMax},
		{Kind: "rollouts", Count: f.Rollouts.Len(), Most: most.AliasesMax},
		{Kind: "builds", Count: f.Builds.Len(), Most: most.BuildsMax},
		{Kind: "game_sessions", Count: s.Games.Len()},
		{Kind: "player_sessions", Count: s.Players.Len()},
		{Kind: "queues", Count: p.Queues.Len(), Most: most.QueuesMax},
		{Kind: "placements", Count: p.Placements.Len()},
		{Kind: "awaiting_archive", Count: v.c.Ended.Len()},
		{Kind: "fullest_fleet_locations", Count: locations, Most: most.LocationsInFleetMax},
		{Kind: "fullest_fleet_computes", Count: computes, Most: most.ComputesInFleetMax},
		{Kind: "fullest_compute_server_processes", Count: processes, Most: most.ProcessesOnComputeMax},
	}
}

// PlaceCounts has the counts of a fleet in one location.
type PlaceCounts struct {
	Fleet, Location string
	Sessions        session.Counts
	Hosts           fleet.SiteCounts
}

// PlaceCounts returns the counts of at most `most` locations of fleets, those of the oldest fleets first. rest is the sum of all others,
// and more reports whether there are any. The cost does not depend on the number of sessions. The counts are for metrics and may be ahead
// of what is durable.
func (v *View) PlaceCounts(most int) (places []PlaceCounts, rest PlaceCounts, more bool) {
	c := v.c
	rest = PlaceCounts{Sessions: c.Sessions.AllCounts(), Hosts: c.Fleets.AllCounts()}
	c.Fleets.FleetsFrom(0, "", func(f *fleet.Fleet) bool {
		for _, l := range f.Locations {
			if more = len(places) == most; more {
				return false
			}
			x := c.PlaceCounts(f.ID, l.Name)
			rest.Sessions.Sub(&x.Sessions)
			rest.Hosts.Sub(&x.Hosts)
			places = append(places, x)
		}
		return true
	})
	return places, rest, more
}
