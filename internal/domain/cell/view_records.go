package cell

import (
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/session"
)

// RecordCount is how many records of a kind there are.
type RecordCount struct {
	Kind  string
	Count int
	Most  int // that there may be; 0: another limit bounds them, or none
}

// RecordCounts counts everything that callers can make. The kinds that begin with "fullest" are about the owner that has
// most of something, because each owner has a limit of its own. It says nothing that has to be durable: it is for metrics.
func (v *View) RecordCounts() []RecordCount {
	c, most := v.c, &v.c.config
	f, m := c.fleets, c.matchmaking
	all := []RecordCount{
		{"fleets", f.Fleets.Len(), most.FleetsMax},
		{"locations", f.Locations.Len(), most.LocationsMax},
		{"computes", f.Computes.Len(), 0},
		{"server_processes", f.Processes.Len(), 0},
		{"fleet_events", f.Events.Len(), 0},
		{"creations", f.Creations.Len(), 0},
		{"aliases", f.Aliases.Len(), most.AliasesMax},
		{"builds", f.Builds.Len(), most.BuildsMax},
		{"game_server_groups", c.gameServers.Groups.Len(), most.GameServerGroupsMax},
		{"game_servers", c.gameServers.Servers.Len(), 0},
		{"game_sessions", c.sessions.Games.Len(), 0},
		{"player_sessions", c.sessions.Players.Len(), 0},
		{"queues", c.placements.Queues.Len(), most.QueuesMax},
		{"placements", c.placements.Placements.Len(), 0},
		{"rule_sets", m.RuleSets.Len(), most.RuleSetsMax},
		{"matchmaking_configurations", m.Configurations.Len(), most.MatchmakersMax},
		{"tickets", m.Tickets.Len(), 0},
		{"matches", m.Matches.Len(), 0},
		{"notices", c.notices.Notices.Len(), 0},
		{"awaiting_archive", c.ended.used, 0},
	}
	return append(append(all, v.fullest()...), v.flowRecordCounts()...)
}

// fullest is about owners whose limit is their own.
func (v *View) fullest() []RecordCount {
	c, config := v.c, &v.c.config
	var locations, computes, processes, servers, notices int
	for _, x := range c.fleets.Fleets.All() {
		locations, computes = max(locations, len(x.Locations)), max(computes, c.fleets.ComputeCount(x.ID))
	}
	for _, x := range c.fleets.Computes.All() {
		processes = max(processes, int(x.Processes))
	}
	for _, x := range c.gameServers.Groups.All() {
		servers = max(servers, c.gameServers.Count(x.Name))
	}
	all := []RecordCount{
		{"fullest_fleet_locations", locations, config.LocationsInFleetMax},
		{"fullest_fleet_computes", computes, config.ComputesInFleetMax},
		{"fullest_compute_server_processes", processes, config.ProcessesOnComputeMax},
		{"fullest_group_game_servers", servers, config.GameServersInGroupMax},
	}
	if to := config.Notify; to != nil {
		for topic := range c.notices.Topics() {
			notices = max(notices, c.notices.Count(topic))
		}
		all = append(all, RecordCount{"fullest_receiver_notices", notices, to.Max})
	}
	return all
}

// flowRecordCounts is empty without player flow.
func (v *View) flowRecordCounts() []RecordCount {
	config, f := &v.c.config, v.c.flow
	if config.Flow == nil {
		return nil
	}
	return []RecordCount{
		{"players", f.Players.Len(), config.PlayersMax},
		{"login_sessions", f.Logins.Len(), 0},
		{"login_tickets", f.Tickets.Len(), config.LoginTicketsMax},
		{"remembered_requests", f.Requests.Len(), config.RequestsMax},
		{"parties", f.Parties.Len(), 0},
		{"invites", f.Invites.Len(), 0},
		{"game_instances", f.Instances.Len(), 0},
		{"memberships", f.Memberships.Len(), 0},
		{"event_subscriptions", len(f.Studio.Subscriptions()), subscriptionsMax},
		{"kept_events", f.Studio.Kept(), flow.StudioEventsMax},
	}
}

// PlaceCounts is what a fleet has in one location.
type PlaceCounts struct {
	Fleet, Location string
	Sessions        session.Counts
	Hosts           fleet.SiteCounts
}

// PlaceCounts counts by location of fleets, the oldest fleets first, for at most so many places. rest counts all others in one,
// and more says that there are any. What it costs does not depend on how many sessions there are. It says nothing that has to be
// durable: it is for metrics.
func (v *View) PlaceCounts(most int) (places []PlaceCounts, rest PlaceCounts, more bool) {
	c := v.c
	rest = PlaceCounts{Sessions: c.sessions.AllCounts(), Hosts: c.fleets.AllCounts()}
	c.fleets.FleetsFrom(0, "", func(f *fleet.Fleet) bool {
		for _, l := range f.Locations {
			if more = len(places) == most; more {
				return false
			}
			x := v.placeCounts(f.ID, l.Name)
			rest.Sessions.Sub(&x.Sessions)
			rest.Hosts.Sub(&x.Hosts)
			places = append(places, x)
		}
		return true
	})
	return places, rest, more
}
