// Package fleet has the records of fleets, locations, computes and server processes, with the indexes and the rules that need no other
// records.
package fleet

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/exit"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/quota"
)

// References to records in the tables of this package; see chunk.Ref.
type (
	Ref         = chunk.Ref[Fleet]
	LocationRef = chunk.Ref[Location]
	ComputeRef  = chunk.Ref[Compute]
	ProcessRef  = chunk.Ref[Process]
	EventRef    = chunk.Ref[Event]
	CreationRef = chunk.Ref[Creation]
)

// Tag is a label that an operator puts on a resource.
type Tag = keyvalue.Pair

// Location is a custom location of the installation.
type Location struct {
	Name    string // "custom-…"
	Region  string // region of its ARN: the one that its creator named
	Account string
	Created domain.Time
	Tags    []Tag
	Holder  quota.Holder // of its quota; see package quota

	Changed uint64 // journal number of the last change; 0: before this run
}

// Status of a fleet or of a location in a fleet.
type Status uint8

// The statuses of a fleet and its locations.
const (
	Active Status = iota + 1
	Deleting
	Unstarted   // NEW: a fleet of a build that has no host yet
	Downloading // it has a host, which fetches the build
	Activating  // a server process has started, and none is ready yet
)

func (s Status) String() string {
	return [...]string{"", "ACTIVE", "DELETING", "NEW", "DOWNLOADING", "ACTIVATING"}[s]
}

// Fleet is a group of computes that run the same game.
//
// Slices of a record are never changed in place: a frozen copy of the record may share them.
type Fleet struct {
	ID              string // "fleet-<uuid>"
	Region, Account string // of its ARN and of every ARN below it
	Name            string
	Description     string
	Status          Status
	Created         domain.Time
	FullProtection  bool // new game sessions are protected from scale-in
	CreationPolicy  *CreationPolicy
	MetricGroups    []string
	CertificateType string  // "DISABLED" or "GENERATED", stored without effect
	Cost            *string // cost per hour as the operator wrote it; nil if never given
	Locations       []FleetLocation
	Tags            []Tag
	Holder          quota.Holder
	Runtime         *Runtime
	Managed         *Managed // nil: an ANYWHERE fleet

	Changed uint64
}

// CreationPolicy limits how many game sessions one creator may create in this fleet. If either field is zero, there is no limit.
type CreationPolicy struct {
	Sessions int32
	Period   time.Duration // whole minutes on the wire
}

// FleetLocation is a location in use by a fleet.
type FleetLocation struct {
	Name           string
	Status         Status
	Capacity       Capacity // of a managed fleet
	ScalingStopped bool     // AUTO_SCALING is suspended there
}

// HasLocation returns the fleet's status in a location, and whether the fleet uses the location.
func (f *Fleet) HasLocation(name string) (Status, bool) {
	for _, l := range f.Locations {
		if l.Name == name {
			return l.Status, true
		}
	}
	return 0, false
}

// Compute is one host of a fleet.
type Compute struct {
	Fleet           Ref
	FleetID         string
	Name            string
	Location        string
	IPAddress       string
	DNSName         string
	CertificatePath string
	Created         domain.Time

	// Registration is random, so that a new compute does not accept tokens of an earlier compute of the same name. Zero: registered by a
	// release without it.
	Registration domain.UUID

	// The auth token is derived from the cell's secret, the fleet, the compute, its registration and the generation; only the generation
	// is stored. The previous token stays valid until it expires, so that processes can switch.
	TokenGeneration uint32 // 0: none was issued yet
	TokensVoid      uint32 // tokens up to this generation are void: an operator replaced them
	TokenExpires    domain.Time
	PreviousExpires domain.Time
	ProcessesEver   int64 // processes that ever connected, for diagnosis
	Tags            []Tag
	Holder          quota.Holder

	Processes    int32 // that have not ended
	Ready        int32 // of these, ready for a game session or hosting one
	Hosting      int32 // of these, hosting one
	idle         int32 // of these, free for a game session
	activating   int32 // game sessions that are not active yet
	activations  int32 // limit of activating, from the fleet's runtime configuration; 0: none
	firstProcess ProcessRef
	Changed      uint64
}

// Key names a server process: the fleet, the compute and the process id that the game chose.
type Key struct{ Fleet, Compute, Process string }

func (k Key) String() string { return k.Fleet + "/" + k.Compute + "/" + k.Process }

// ProcessState is the state of a server process.
type ProcessState uint8

// A lost connection is not a state of its own: see Process.Linked.
const (
	Initialized  ProcessState = iota + 1 // connected, not ready yet
	ProcessReady                         // it called ProcessReady; may host a game session
	Ended                                // it ended, or the service gave up on it
)

func (s ProcessState) String() string {
	return [...]string{"", "INITIALIZED", "ACTIVE", "ENDED"}[s]
}

// Health is the latest health report of a process.
type Health uint8

// Unheard: ready, but without a heartbeat so far.
const (
	Unheard Health = iota
	Healthy
	Unhealthy
)

func (h Health) String() string { return [...]string{"UNHEARD", "HEALTHY", "UNHEALTHY"}[h] }

// EndReason is why a process ended.
type EndReason uint8

// The reasons.
const (
	EndedNormally       EndReason = iota + 1 // TerminateServerProcess
	EndedCrashed                             // its connection was lost and the grace period has passed
	EndedReplaced                            // another process took its id
	EndedUnhealthy                           // unhealthy or silent for too long, and did not end when asked to
	EndedForced                              // was asked to end and did not
	EndedNeverReady                          // connected and never called ProcessReady
	EndedWithCompute                         // its compute, location or fleet was removed
	EndedActivationLate                      // asked to end because its game session never activated
)

func (r EndReason) String() string {
	return [...]string{"", "ENDED", "CRASHED", "REPLACED", "UNHEALTHY", "FORCED", "NEVER_READY", "COMPUTE_REMOVED", "NOT_ACTIVATED"}[r]
}

// Process is one running game server.
type Process struct {
	Key        Key
	Compute    ComputeRef
	Location   string
	State      ProcessState
	Linked     bool   // it has an open connection to some node
	Link       uint64 // number of its newest connection: only the loss of that one counts
	Node       uint32 // number of the node that has or last had the connection; 0: a single node
	Health     Health
	Settled    bool // ready for a while without a heartbeat, and treated as healthy (slow health callbacks)
	Refreshing bool // it was asked to open another connection, and may not read until it has switched
	Port       uint16
	SDK        string // "Go 5.5.0"
	Tool       string
	LogPaths   []string
	Life       uint32 // counts the successive processes with this key
	Token      uint32 // generation of the compute's auth token with which it was started; 0: none, or a life that began on an open connection
	Connected  domain.Time
	Ready      domain.Time
	EndedAt    domain.Time
	ForgetAt   domain.Time // with State Ended
	EndReason  EndReason
	Activation uint64 // hash of the RequestId that made it ready: a repeat gets the same answer
	Ending     uint64 // hash of the RequestId that ended it

	Session    chunk.AnyRef // the game session it hosts, in the session package's table
	Activating bool         // that game session is not active yet
	HadSession bool

	ReadyBy     domain.ContactTime // ProcessReady must have been called
	LostBy      domain.ContactTime // it must have reconnected
	UnhealthyBy domain.ContactTime // a good heartbeat must have come
	TerminateBy domain.ContactTime // it must have ended; set when it is asked to
	// TerminationTime is TerminateBy on the wall clock, in the form sent to the process.
	TerminationTime domain.Time
	TerminateWhy    EndReason

	// These fields are for diagnostics; no decision depends on them.
	LinkAt   domain.Time  // when Linked last changed
	HealthAt domain.Time  // when Health last changed
	AskedAt  domain.Time  // when it was asked to end
	Game     string       // id of the game session that it hosts or hosted
	Exit     *exit.Report // how it ended, if an agent saw that

	next, prev ProcessRef // on its compute
	counted    counted
	Changed    uint64
}

// Eligible reports whether the process itself could host a game session now.
func (p *Process) Eligible() bool {
	return p.State == ProcessReady && p.Linked && !p.Refreshing && p.Session == 0 && !p.HadSession && p.TerminateBy == 0 &&
		(p.Health == Healthy || p.Health == Unheard && p.Settled)
}

// Event is an entry of a fleet's event log.
type Event struct {
	FleetID string
	ID      domain.UUID
	Code    string // an EventCode of the API
	Message string
	At      domain.Time
	No      uint64 // number among all fleet events of the cell; orders events of the same millisecond
	Count   int64  // how many events it stands for; 0: one
	Players int64  // number of players who lost their game, in all events that it stands for
	Changed uint64
}

// Times returns how many events it stands for.
func (e *Event) Times() int64 { return max(e.Count, 1) }

// Creation records that a creator created a game session, while the creation policy counts it.
type Creation struct {
	FleetID, Creator string
	At, Until        domain.Time
	Changed          uint64
}

// Sweeps reports whether the fleet or one of its locations is being deleted.
func (f *Fleet) Sweeps() bool {
	for _, l := range f.Locations {
		if l.Status == Deleting {
			return true
		}
	}
	return f.Status == Deleting
}
