// Package placement has the records of queues and placements, their order, and the choice of places for a placement. Package fleet
// tracks which server processes are free.
package placement

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/quota"
)

// References to records in the tables of this package; see chunk.Ref.
type (
	QueueRef = chunk.Ref[Queue]
	Ref      = chunk.Ref[Placement]
)

// Criterion is a criterion by which destinations are ordered.
type Criterion uint8

// The criteria, in their default order.
const (
	ByLatency Criterion = iota + 1
	ByCost
	ByDestination
	ByLocation
)

// LatencyPolicy is a cap on every player's latency for a period.
type LatencyPolicy struct {
	Cap      int32         // milliseconds
	Duration time.Duration // whole seconds on the wire; 0: until the placement times out
}

// Queue is a game session queue.
//
// Slices of a record are never changed in place: a frozen copy of the record may share them.
type Queue struct {
	Name               string
	Region, Account    string
	Created            domain.Time
	Timeout            time.Duration
	Destinations       []string // ARNs of fleets or aliases, in order of preference
	LatencyPolicies    []LatencyPolicy
	AllowedLocations   []string // empty: all
	PriorityOrder      []Criterion
	LocationOrder      []string
	CustomEventData    string
	NotificationTarget string
	Tags               []keyvalue.Pair
	Holder             quota.Holder // of its quota; see package quota

	Changed uint64
}

// Status of a placement.
type Status uint8

// The statuses.
const (
	Pending Status = iota + 1
	Fulfilled
	Cancelled
	TimedOut
	Failed
)

func (s Status) String() string {
	return [...]string{"", "PENDING", "FULFILLED", "CANCELLED", "TIMED_OUT", "FAILED"}[s]
}

// Latency is a player's latency to one location.
type Latency struct {
	Player       string
	Location     string
	Milliseconds float32
}

// Player is a player of a placement.
type Player struct {
	Player string
	Data   string
	ID     domain.PlayerSessionID // of the future player session
	Maker  domain.Maker           // of the player's ticket, if it differs from the placement's
}

// Override replaces the queue's location order for one placement.
type Override struct {
	Locations []string
	Only      bool // PlacementFallbackStrategy NONE: never anywhere else
}

// Turn determines to which fleet of a rollout a placement goes. It is drawn once, so that the share is exact however long placements
// wait.
type Turn struct {
	Alias string
	No    uint32 // of the rollout
	New   bool
}

// TurnAt returns the turn of a placement at a rollout.
func (p *Placement) TurnAt(alias string, no uint32) (toNew, drawn bool) {
	for _, t := range p.Turns {
		if t.Alias == alias && t.No == no {
			return t.New, true
		}
	}
	return false, false
}

// Try is an attempt to place, or a destination that an ended placement passed over.
type Try struct {
	At       domain.Time
	Fleet    string
	Location string
	Process  string // of an attempt
	Outcome  Outcome
	Detail   string // details of the outcome, such as "120 ms over the cap of 80 ms"
}

// Outcome is the result of a try.
type Outcome uint8

// The outcomes.
const (
	Reserved         Outcome = iota + 1 // a server process was given the game session
	ActivationFailed                    // which then did not activate it
	NoFreeProcess
	OverLatency
	NotAllowed // by the queue's filter
	NotOverride
	FleetNotActive
	NoSuchFleet
	NoLocation
	AliasTerminal // the alias has no fleet now
)

var outcomeNames = [...]string{
	Reserved: "PROCESS_RESERVED", ActivationFailed: "ACTIVATION_FAILED", NoFreeProcess: "NO_FREE_PROCESS", OverLatency: "LATENCY",
	NotAllowed: "FILTER", NotOverride: "PRIORITY_OVERRIDE", FleetNotActive: "FLEET_STATUS", NoSuchFleet: "NO_SUCH_FLEET", NoLocation: "NO_LOCATION",
	AliasTerminal: "ALIAS_TERMINAL",
}

func (o Outcome) String() string { return outcomeNames[o] }

// Placement is a request for a game session with seats for players.
type Placement struct {
	ID              string
	Queue           string
	Region, Account string
	Maker           domain.Maker
	Holder          quota.Holder // 0: none, or the maker
	Status          Status
	Start, End      domain.Time
	TimeoutAt       domain.Time

	PlayersMax     int32
	Name           string
	Data           string
	MatchmakerData string
	Properties     []keyvalue.Pair
	Latencies      []Latency
	Players        []Player
	Override       *Override
	Regions        []string // preferred locations of a game of player flow, best first; they precede the queue's order
	PassedOnce     bool     // the override's locations had their one pass

	Game       string // id of the game session: of the attempt in progress, or the one that succeeded
	GameRegion string // of its ARN: its fleet's, not the queue's
	IPAddress  string
	DNSName    string
	Port       uint16
	Location   string

	Turns []Turn // at the rollouts of its queue's aliases

	Tried []Try // the latest attempts, oldest first; in an ended placement, also what it passed over

	EndedNo uint64
	No      uint64 // number among all placements of the cell; orders placements of the same millisecond
	held    int32  // bytes counted for it
	waiting []Place
	Changed uint64
}

// Bytes estimates the memory of the data with which the placement was started.
func (p *Placement) Bytes() int {
	const record, item = 512, 64
	n := record + len(p.ID) + len(p.Name) + len(p.Data) + len(p.MatchmakerData)
	for i := range p.Properties {
		n += item + len(p.Properties[i].Key) + len(p.Properties[i].Value)
	}
	for i := range p.Latencies {
		n += item + len(p.Latencies[i].Player) + len(p.Latencies[i].Location)
	}
	for i := range p.Players {
		n += item + len(p.Players[i].Player) + len(p.Players[i].Data)
	}
	if o := p.Override; o != nil {
		for _, location := range o.Locations {
			n += item + len(location)
		}
	}
	return n
}

// triedMax is the most attempts that a placement stores.
const triedMax = 32

// Place is a location of a fleet.
type Place struct{ Fleet, Location string }
