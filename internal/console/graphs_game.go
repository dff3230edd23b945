package console

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/gamemetrics"
	"github.com/musterhq/muster/internal/series"
)

// fleetGraphs returns the graphs of a fleet in one location or, without one, in all of them together.
func fleetGraphs(fleet, location string, managed bool) []graph {
	at := []series.Dimension{{Name: "FleetId", Value: fleet}}
	if location != "" {
		at = append(at, series.Dimension{Name: "Location", Value: location})
	}
	of := func(id, title string, metrics ...string) graph {
		return graphOf(id, title, gamemetrics.Place, at, metrics...)
	}
	all := []graph{
		of("game-sessions", "Game sessions", "ActiveGameSessions", "ActivatingGameSessions", "AvailableGameSessions", "ConcurrentActivatableGameSessions"),
		of("player-sessions", "Player sessions", "CurrentPlayerSessions", "AvailablePlayerSessions"),
		of("player-activations", "Players who connected", "PlayerSessionActivations"),
		of("server-processes", "Server processes", "ActiveServerProcesses", "HealthyServerProcesses"),
		of("process-changes", "Server processes that came and went", "ServerProcessActivations", "ServerProcessTerminations", "ServerProcessAbnormalTerminations"),
		of("computes", "Computes", "ActiveInstances", "IdleInstances"),
		of("hosts-busy", "How busy the hosts are", "CPUUtilization", "MemoryUtilization"),
		of("hosts-network", "Network of the hosts", "NetworkIn", "NetworkOut"),
		of("hosts-disk", "Disks of the hosts", "DiskReadBytes", "DiskWriteBytes"),
		of("hosts-disk-operations", "Operations of these disks", "DiskReadOps", "DiskWriteOps"),
		of("shares", "Shares", "PercentAvailableGameSessions", "PercentHealthyServerProcesses", "PercentIdleInstances"),
	}
	if managed && location != "" {
		all = append(all, graphOf("hosts", "Hosts that are wanted", gamemetrics.Hosts, at, "DesiredInstances", "MinInstances", "MaxInstances"))
	}
	return all
}

// queueGraphs returns the graphs of a queue.
func queueGraphs(queue string, kept *series.Store) []graph {
	at := []series.Dimension{{Name: "QueueName", Value: queue}}
	of := func(id, title string, metrics ...string) graph {
		return graphOf(id, title, gamemetrics.Queue, at, metrics...)
	}
	all := []graph{
		of("depth", "Placements that wait", "QueueDepth"),
		of("wait", "Their wait", "AverageWaitTime"),
		of("placements", "Placements", "PlacementsStarted", "PlacementsSucceeded", "PlacementsCanceled", "PlacementsTimedOut", "PlacementsFailed"),
		of("choices", "Placements by choice", "FirstChoiceNotViable", "FirstChoiceOutOfCapacity", "LowestLatencyPlacement", "LowestPricePlacement"),
	}
	for _, d := range definitions[gamemetrics.QueueLocation] {
		prefix, _, _ := strings.Cut(d.Name, "<")
		all = append(all, graph{ID: "locations", Title: "Placements by location", Unit: d.Unit, Counts: true, Lines: linesOf(kept, func(metric string, dims []series.Dimension) (string, bool) {
			location, ok := strings.CutPrefix(metric, prefix)
			return location, ok && slices.Equal(dims, at)
		}, d)})
	}
	return all
}

// configurationGraphs returns the graphs of a matchmaking configuration.
func configurationGraphs(name string, kept *series.Store) []graph {
	at := []series.Dimension{{Name: "ConfigurationName", Value: name}}
	of := func(id, title string, metrics ...string) graph {
		return graphOf(id, title, gamemetrics.Configuration, at, metrics...)
	}
	all := []graph{
		of("tickets", "Active tickets", "CurrentTickets"),
		of("ticket-changes", "Tickets", "TicketsStarted", "TicketsFailed", "TicketsTimedOut", "PlayersStarted"),
		of("matches", "Matches", "MatchesCreated", "MatchesAccepted", "MatchesRejected", "MatchAcceptancesTimedOut", "MatchesPlaced"),
		of("times", "How long it takes", "TimeToMatch", "TimeToTicketSuccess", "TimeToTicketCancel", "MatchmakingSearchTime"),
	}
	for _, rules := range [][2]string{{"RuleEvaluationsFailed", "Evaluations of rules that failed"}, {"RuleEvaluationsPassed", "Evaluations of rules that passed"}} {
		d := definitions[gamemetrics.Rule][rules[0]]
		all = append(all, graph{ID: strings.ToLower(rules[0]), Title: rules[1], Unit: d.Unit, Counts: true, Lines: linesOf(kept, func(metric string, dims []series.Dimension) (string, bool) {
			if metric != rules[0] || len(dims) != 2 || dims[0] != at[0] {
				return "", false
			}
			return dims[1].Value, true
		}, d)})
	}
	return slices.DeleteFunc(all, func(g graph) bool { return len(g.Lines) == 0 })
}

// linesOf returns a line for each kept series that name accepts: those with the largest sums, in the order of their
// names.
func linesOf(kept *series.Store, name func(metric string, dims []series.Dimension) (string, bool), d *gamemetrics.Definition) []line {
	if kept == nil {
		return nil
	}
	found := map[string]line{}
	sums := map[string]float64{}
	kept.Totals(func(k series.Key, all series.Total) bool {
		if metric, dims, err := k.Parse(); err == nil {
			if name, ok := name(metric, dims); ok {
				found[name], sums[name] = lineOf(d, name, k), all.Sum
			}
		}
		return true
	})
	names := slices.SortedFunc(maps.Keys(found), func(a, b string) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b)) })
	names = names[:min(len(names), graphLines)]
	slices.Sort(names)
	lines := make([]line, len(names))
	for i, n := range names {
		lines[i] = found[n]
	}
	return lines
}
