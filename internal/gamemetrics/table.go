// Package gamemetrics measures the GameLift service's metrics of fleets, queues, matchmaking and game server groups. Table has each metric once, with
// its name, its definition and how it is measured. Prometheus' metrics, the stored series, the metrics for CloudWatch clients and docs/metrics.md are all
// generated from it.
package gamemetrics

import (
	"strings"
	"unicode"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// Kind is the way in which a metric is measured.
type Kind uint8

// The kinds.
const (
	Gauge    Kind = iota + 1 // the state at the end of the minute
	Counter                  // how often something happened within the minute
	Duration                 // the durations of everything that ended within the minute
)

func (k Kind) String() string { return [...]string{"", "gauge", "counter", "duration"}[k] }

// Subject is the kind of thing that a metric describes.
type Subject uint8

// The subjects.
const (
	Place         Subject = iota + 1 // a fleet in one location, and the sums of a fleet and of a metric group
	Hosts                            // a fleet in one location, only
	Queue                            // a queue
	Location                         // a location, for all queues
	QueueLocation                    // a queue and a location, which is part of the metric's name
	Configuration                    // a matchmaking configuration
	Rule                             // a rule of a matchmaking configuration
	Group                            // a game server group
)

// labels are the labels in Prometheus' form, by subject.
var labels = [...][]string{
	Place: {"fleet_id", "location", "metric_group"}, Hosts: {"fleet_id", "location"}, Queue: {"queue"}, Location: {"location"}, QueueLocation: {"queue", "location"},
	Configuration: {"matchmaking_configuration"}, Rule: {"matchmaking_configuration", "rule"}, Group: {"game_server_group"},
}

// dimensions are the service's dimensions, by subject. A Place has further series with fewer dimensions.
var dimensions = [...][]string{
	Place: {"FleetId", "Location"}, Hosts: {"FleetId", "Location"}, Queue: {"QueueName"}, Location: {"Location"}, QueueLocation: {"QueueName"},
	Configuration: {"ConfigurationName"}, Rule: {"ConfigurationName", "RuleName"}, Group: {"GameServerGroup"},
}

// metricGroups is the dimension of the sums over the fleets of a metric group.
const metricGroups = "MetricGroups"

// Definition is one metric of the service.
type Definition struct {
	Name    string // the service's
	Unit    string // Count, Percent, Seconds or Bytes
	Kind    Kind
	Of      Subject
	Meaning string

	place func(*hosting.PlaceCounts) (value float64, ok bool) // for a gauge of a Place; not ok: a share of nothing
	hosts func(fleet.Capacity) int32                          // for a gauge of Hosts
	use   func(use) float64                                   // for a gauge of a Place that agents measure: the sum over its hosts
}

// Prometheus returns the name in Prometheus' form.
func (d *Definition) Prometheus() string {
	var b strings.Builder
	b.WriteString("gamelift_")
	if d.Of == Location { // the same metric by queue has another name, so that sums do not count twice
		b.WriteString("location_")
	}
	name := []rune(d.Name)
	upper := func(i int) bool { return i < len(name) && unicode.IsUpper(name[i]) }
	for i, r := range name {
		if r == ' ' || r == '<' || r == '>' {
			continue
		}
		if upper(i) && i > 0 && (!upper(i-1) || i+1 < len(name) && !upper(i+1)) { // a word begins; an abbreviation is one word
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return d.withUnit(b.String())
}

// withUnit adds the unit to a name, and the suffix of counters.
func (d *Definition) withUnit(name string) string {
	if d == placementsTo {
		name = "gamelift_placements_succeeded_by_location"
	}
	if unit := map[string]string{"Seconds": "_seconds", "Bytes": "_bytes", "Percent": "_percent"}[d.Unit]; !strings.HasSuffix(name, unit) && !strings.HasPrefix(d.Name, d.Unit) {
		name += unit
	}
	if d.Kind == Counter {
		name += "_total"
	}
	return name
}

// Labels returns the names of the labels in Prometheus' form.
func (d *Definition) Labels() []string { return labels[d.Of] }

// DimensionSets returns the sets of dimensions of the metric's stored series.
func (d *Definition) DimensionSets() [][]string {
	if d.Of == Place {
		return [][]string{{"FleetId", "Location"}, {"FleetId"}, {metricGroups}}
	}
	return [][]string{dimensions[d.Of]}
}

func ofPlace(name, meaning string, value func(*hosting.PlaceCounts) int32) *Definition {
	return &Definition{Name: name, Unit: "Count", Kind: Gauge, Of: Place, Meaning: meaning, place: func(n *hosting.PlaceCounts) (float64, bool) {
		return float64(value(n)), true
	}}
}

// shareOf defines a metric of a share in percent. It has no value if the whole is 0.
func shareOf(name, meaning string, value func(*hosting.PlaceCounts) (part, all int32)) *Definition {
	return &Definition{Name: name, Unit: "Percent", Kind: Gauge, Of: Place, Meaning: meaning, place: func(n *hosting.PlaceCounts) (float64, bool) {
		part, all := value(n)
		if all == 0 {
			return 0, false
		}
		return float64(part) * 100 / float64(all), true
	}}
}

func ofHosts(name, meaning string, value func(fleet.Capacity) int32) *Definition {
	return &Definition{Name: name, Unit: "Count", Kind: Gauge, Of: Hosts, Meaning: meaning, hosts: value}
}

// ofUse defines a metric of the mean over the hosts of a place.
func ofUse(name, meaning string, sum func(use) float64) *Definition {
	return &Definition{Name: name, Unit: "Percent", Kind: Gauge, Of: Place, Meaning: meaning, use: sum}
}

func bytesOf(name, meaning string) *Definition {
	return &Definition{Name: name, Unit: "Bytes", Kind: Counter, Of: Place, Meaning: meaning}
}

func gauge(of Subject, name, unit, meaning string) *Definition {
	return &Definition{Name: name, Unit: unit, Kind: Gauge, Of: of, Meaning: meaning}
}

func counter(of Subject, name, meaning string) *Definition {
	return &Definition{Name: name, Unit: "Count", Kind: Counter, Of: of, Meaning: meaning}
}

func duration(name, meaning string) *Definition {
	return &Definition{Name: name, Unit: "Seconds", Kind: Duration, Of: Configuration, Meaning: meaning}
}

// The metrics that are not measured by a function in the table.
var (
	activations         = counter(Place, "ServerProcessActivations", "Server processes that became ready for a game session.")
	terminations        = counter(Place, "ServerProcessTerminations", "Server processes that ended for any reason.")
	abnormal            = counter(Place, "ServerProcessAbnormalTerminations", "Server processes that ended without ProcessEnding: crashed, silent, unhealthy, or killed.")
	playerActivations   = counter(Place, "PlayerSessionActivations", "Player sessions that changed from RESERVED to ACTIVE.")
	networkIn           = bytesOf("NetworkIn", "Bytes that hosts with an agent received, on all interfaces except loopback.")
	networkOut          = bytesOf("NetworkOut", "Bytes that hosts with an agent sent, on all interfaces except loopback.")
	diskRead            = bytesOf("DiskReadBytes", "Bytes that hosts with an agent read from their disks.")
	diskWritten         = bytesOf("DiskWriteBytes", "Bytes that hosts with an agent wrote to their disks.")
	diskReads           = counter(Place, "DiskReadOps", "Read operations on the disks of hosts with an agent.")
	diskWrites          = counter(Place, "DiskWriteOps", "Write operations on the disks of hosts with an agent.")
	queueDepth          = gauge(Queue, "QueueDepth", "Count", "Placements of the queue that are PENDING.")
	averageWait         = gauge(Queue, "AverageWaitTime", "Seconds", "Average time that PENDING placements of the queue have waited.")
	placementsStarted   = counter(Queue, "PlacementsStarted", "New placements.")
	placementsSucceeded = counter(Queue, "PlacementsSucceeded", "Placements that ended FULFILLED.")
	placementsCanceled  = counter(Queue, "PlacementsCanceled", "Placements that ended CANCELLED.")
	placementsTimedOut  = counter(Queue, "PlacementsTimedOut", "Placements that ended TIMED_OUT.")
	placementsFailed    = counter(Queue, "PlacementsFailed", "Placements that ended FAILED.")
	placementsTo        = counter(QueueLocation, "Placement <location>", "PlacementsSucceeded by location. The location is part of the name: Placement custom-home.")
	firstNotViable      = counter(Queue, "FirstChoiceNotViable", "Placements fulfilled elsewhere than at their first choice, because all hosts there were drained or no server process was ready.")
	firstFull           = counter(Queue, "FirstChoiceOutOfCapacity", "Placements fulfilled elsewhere than at their first choice, because no server process there was free.")
	lowestLatency       = counter(Queue, "LowestLatencyPlacement", "Placements with latencies that went to the location with the lowest average latency.")
	lowestPrice         = counter(Queue, "LowestPricePlacement", "Placements with latencies that went to the fleet with the lowest cost among those in its location.")
	locationDepth       = gauge(Location, "QueueDepth", "Count", "Placements of all queues that wait for a server process, by the location of their first choice.")
	locationWait        = gauge(Location, "AverageWaitTime", "Seconds", "Average time that the placements in QueueDepth have waited.")
	firstNotViableAt    = counter(Location, "FirstChoiceNotViable", "FirstChoiceNotViable of all queues, by the location that fulfilled the placement.")
	firstFullAt         = counter(Location, "FirstChoiceOutOfCapacity", "FirstChoiceOutOfCapacity of all queues, by the location that fulfilled the placement.")
	lowestLatencyAt     = counter(Location, "LowestLatencyPlacement", "LowestLatencyPlacement of all queues, by location.")
	lowestPriceAt       = counter(Location, "LowestPricePlacement", "LowestPricePlacement of all queues, by location.")
	currentTickets      = gauge(Configuration, "CurrentTickets", "Count", "Tickets that have not ended.")
	ticketsStarted      = counter(Configuration, "TicketsStarted", "New tickets, including backfill tickets.")
	ticketsFailed       = counter(Configuration, "TicketsFailed", "Tickets that ended FAILED.")
	ticketsTimedOut     = counter(Configuration, "TicketsTimedOut", "Tickets that ended TIMED_OUT.")
	playersStarted      = counter(Configuration, "PlayersStarted", "Players of new tickets.")
	matchesCreated      = counter(Configuration, "MatchesCreated", "Potential matches created.")
	matchesAccepted     = counter(Configuration, "MatchesAccepted", "Matches that require acceptance and that all players accepted.")
	matchesRejected     = counter(Configuration, "MatchesRejected", "Matches that a player rejected.")
	acceptancesTimedOut = counter(Configuration, "MatchAcceptancesTimedOut", "Matches that players did not accept in time.")
	matchesPlaced       = counter(Configuration, "MatchesPlaced", "Matches that got a game session.")
	timeToMatch         = duration("TimeToMatch", "Time from the start of a ticket to a potential match with it.")
	timeToCancel        = duration("TimeToTicketCancel", "Time from the start of a ticket to its cancellation.")
	timeToSuccess       = duration("TimeToTicketSuccess", "Time from the start of a ticket to its completion.")
	searchTime          = duration("MatchmakingSearchTime", "Time that a ticket spent in status SEARCHING, measured each time that it left this status.")
	rulesPassed         = counter(Rule, "RuleEvaluationsPassed", "Passed evaluations of the rule with tickets that left the pool within the minute.")
	rulesFailed         = counter(Rule, "RuleEvaluationsFailed", "Failed evaluations of the rule with tickets that left the pool within the minute.")
	availableServers    = gauge(Group, "AvailableGameServers", "Count", "Game servers that are AVAILABLE, including claimed ones.")
	utilizedServers     = gauge(Group, "UtilizedGameServers", "Count", "Game servers that are UTILIZED.")
	utilizedShare       = gauge(Group, "PercentUtilizedGameServers", "Percent", "UtilizedGameServers / all game servers of the group × 100.")
)

// countedByHosts are the counters of hosts with an agent.
var countedByHosts = []*Definition{networkIn, networkOut, diskRead, diskWritten, diskReads, diskWrites}

// Table has all metrics, in the order of the documents.
var Table = []*Definition{
	ofPlace("ActiveInstances", "Computes with server processes that are ready or host a game session.", (*hosting.PlaceCounts).ActiveInstances),
	ofPlace("IdleInstances", "Active instances without a game session.", (*hosting.PlaceCounts).IdleInstances),
	shareOf("PercentIdleInstances", "IdleInstances / ActiveInstances × 100.", func(n *hosting.PlaceCounts) (int32, int32) { return n.IdleInstances(), n.ActiveInstances() }),
	ofHosts("DesiredInstances", "Desired number of hosts of a fleet of a build.", func(c fleet.Capacity) int32 { return c.Desired }),
	ofHosts("MaxInstances", "Maximum number of hosts of a fleet of a build.", func(c fleet.Capacity) int32 { return c.Max }),
	ofHosts("MinInstances", "Minimum number of hosts of a fleet of a build.", func(c fleet.Capacity) int32 { return c.Min }),

	ofUse("CPUUtilization", "Average CPU utilization of the hosts with an agent.", func(u use) float64 { return u.cpu }),
	ofUse("MemoryUtilization", "Average memory utilization of the hosts with an agent. The cloud service has no such metric.", func(u use) float64 { return u.memory }),
	networkIn, networkOut, diskRead, diskWritten, diskReads, diskWrites,

	ofPlace("ActiveServerProcesses", "Server processes that are ready or host a game session.", func(n *hosting.PlaceCounts) int32 { return n.Hosts.Processes }),
	ofPlace("HealthyServerProcesses", "Active server processes whose last health report was good.", func(n *hosting.PlaceCounts) int32 { return n.Hosts.Healthy }),
	shareOf("PercentHealthyServerProcesses", "HealthyServerProcesses / ActiveServerProcesses × 100.", func(n *hosting.PlaceCounts) (int32, int32) { return n.Hosts.Healthy, n.Hosts.Processes }),
	activations, terminations, abnormal,

	ofPlace("ActivatingGameSessions", "Game sessions that are ACTIVATING.", func(n *hosting.PlaceCounts) int32 { return n.Sessions.Activating }),
	ofPlace("ActiveGameSessions", "Game sessions that are ACTIVE, with or without players.", (*hosting.PlaceCounts).ActiveGameSessions),
	ofPlace("AvailableGameSessions", "Healthy server processes that wait for a game session.", (*hosting.PlaceCounts).AvailableGameSessions),
	ofPlace("ConcurrentActivatableGameSessions", "Available game sessions that MaxConcurrentGameSessionActivations does not currently hold back.", (*hosting.PlaceCounts).ActivatableGameSessions),
	shareOf("PercentAvailableGameSessions", "AvailableGameSessions / (ActiveGameSessions + AvailableGameSessions + unhealthy server processes) × 100.", func(n *hosting.PlaceCounts) (int32, int32) {
		return n.AvailableGameSessions(), n.ActiveGameSessions() + n.AvailableGameSessions() + n.UnhealthyProcesses()
	}),

	ofPlace("CurrentPlayerSessions", "Player sessions that are RESERVED or ACTIVE.", (*hosting.PlaceCounts).CurrentPlayerSessions),
	playerActivations,
	ofPlace("AvailablePlayerSessions", "Empty player slots of ACTIVE game sessions, including sessions that accept no players. Reserved slots do not count.", (*hosting.PlaceCounts).AvailablePlayerSessions),

	queueDepth, averageWait, placementsStarted, placementsSucceeded, placementsCanceled, placementsTimedOut, placementsFailed, placementsTo,
	firstNotViable, firstFull, lowestLatency, lowestPrice,
	locationDepth, locationWait, firstNotViableAt, firstFullAt, lowestLatencyAt, lowestPriceAt,

	currentTickets, ticketsStarted, ticketsFailed, ticketsTimedOut, playersStarted,
	matchesCreated, matchesAccepted, matchesRejected, acceptancesTimedOut, matchesPlaced,
	timeToMatch, timeToCancel, timeToSuccess, searchTime, rulesPassed, rulesFailed,

	availableServers, utilizedServers, utilizedShare,
}

// Is reports whether the definition is that of the named metric.
func (d *Definition) Is(metric string) bool {
	return d.Name == metric || d == placementsTo && strings.HasPrefix(metric, placementPrefix)
}
