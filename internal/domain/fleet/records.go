// Package fleet holds fleets, the locations they may use, the computes registered in them and the server processes on
// those computes: their data, their indexes and the rules that need nothing else.
package fleet

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/keyvalue"
)

// These name a record inside one of this package's tables; see chunk.Ref.
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

// Location is a custom location, known to the whole installation.
type Location struct {
	Name    string // "custom-…"
	Region  string // region of its ARN: the one its creator named
	Account string
	Created domain.Time
	Tags    []Tag

	Changed uint64 // journal number of the last change, 0 when older than this run
}

// Status of a fleet or of a location in a fleet.
type Status uint8

// The statuses that a fleet and its locations pass through.
const (
	Active Status = iota + 1
	Deleting
	Unstarted // NEW: a fleet of a build that no agent has joined yet
)

func (s Status) String() string { return [...]string{"", "ACTIVE", "DELETING", "NEW"}[s] }

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
	FullProtection  bool // new game sessions are protected from scale-down
	CreationPolicy  *CreationPolicy
	MetricGroups    []string
	CertificateType string  // "DISABLED" or "GENERATED", kept and given back
	Cost            *string // cost for each hour as the operator wrote it; nil when never given
	Locations       []FleetLocation
	Tags            []Tag
	Runtime         *Runtime
	Managed         *Managed // nil: an ANYWHERE fleet

	Changed uint64
}

// CreationPolicy limits how many game sessions one creator may make in this fleet. A zero in either member: no limit.
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

// HasLocation reports whether the fleet uses the location and its status there.
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

	// Registration is random, and another one when a compute of this name is registered anew: its tokens are not those of
	// the one before. Zero: registered by a version that had none.
	Registration domain.UUID

	// The auth token is derived from the cell's secret, the fleet, the compute, its registration and the generation; only the
	// generation is kept. The one before stays good until it expires, so that processes may change over.
	TokenGeneration uint32 // 0: none was issued yet
	TokensVoid      uint32 // tokens of this generation and those before are void: an operator replaced them
	TokenExpires    domain.Time
	PreviousExpires domain.Time
	ProcessesEver   int64 // processes that ever connected, for diagnosis
	Tags            []Tag

	Processes    int32 // that have not ended
	Ready        int32 // of these, ready for a game session or hosting one
	Hosting      int32 // of these, hosting one
	idle         int32 // of these, free for a game session
	activating   int32 // game sessions that are not active yet
	activations  int32 // how many of them there may be, by the fleet's runtime configuration; 0: any number
	firstProcess ProcessRef
	Changed      uint64
}

// Key names a server process: the fleet, the compute and the process id that the game chose.
type Key struct{ Fleet, Compute, Process string }

func (k Key) String() string { return k.Fleet + "/" + k.Compute + "/" + k.Process }

// ProcessState is where a server process is in its life.
type ProcessState uint8

// The states. A lost link is no state of its own: see Process.Linked.
const (
	Initialized  ProcessState = iota + 1 // connected, not ready yet
	ProcessReady                         // it called ProcessReady; may host a game session
	Ended                                // it ended, or was given up
)

func (s ProcessState) String() string {
	return [...]string{"", "INITIALIZED", "ACTIVE", "ENDED"}[s]
}

// Health is what a process last said of itself.
type Health uint8

// The healths. Unheard: ready, but no heartbeat has come yet.
const (
	Unheard Health = iota
	Healthy
	Unhealthy
)

func (h Health) String() string { return [...]string{"UNHEARD", "HEALTHY", "UNHEALTHY"}[h] }

// EndReason is how a process ended.
type EndReason uint8

// The reasons.
const (
	EndedNormally       EndReason = iota + 1 // TerminateServerProcess
	EndedCrashed                             // its link was lost and the grace is over
	EndedReplaced                            // another process took its id
	EndedUnhealthy                           // unhealthy or silent for too long, and did not end when told to
	EndedForced                              // was told to end and did not
	EndedNeverReady                          // connected and never called ProcessReady
	EndedWithCompute                         // its compute, location or fleet was removed
	EndedActivationLate                      // told to end because its game session never activated
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
	Linked     bool   // a connection to some node is open
	Link       uint64 // which one: only the loss of the newest counts
	Health     Health
	Settled    bool // ready for a while without a heartbeat: as good as healthy (slow health callbacks)
	Refreshing bool // it was told to open another connection, and may be deaf until it has changed over
	Port       uint16
	SDK        string // "Go 5.5.0"
	Tool       string
	LogPaths   []string
	Life       uint32 // counts the processes that used this key one after the other
	Token      uint32 // generation of the compute's auth token that it was started with; 0: none, or a life that began on a connection that was there
	Connected  domain.Time
	Ready      domain.Time
	EndedAt    domain.Time
	ForgetAt   domain.Time // with State Ended
	EndReason  EndReason
	Activation uint64 // hash of the RequestId that made it ready: a repeat gets the same answer
	Ending     uint64 // hash of the RequestId that ended it

	Session    chunk.AnyRef // the game session it hosts, in the session package's table
	Activating bool         // which is not active yet
	HadSession bool

	ReadyBy     domain.ContactTime // ProcessReady must have come
	LostBy      domain.ContactTime // the link must be back
	UnhealthyBy domain.ContactTime // a good heartbeat must have come
	TerminateBy domain.ContactTime // it must have ended; set once it was told to
	// TerminationTime is TerminateBy as the process was told, on the wall clock.
	TerminationTime domain.Time
	TerminateWhy    EndReason

	// For those who ask later what happened. Nothing is decided by them.
	LinkAt   domain.Time // when Linked last changed
	HealthAt domain.Time // when Health last changed
	AskedAt  domain.Time // when it was told to end
	Game     string      // id of the game session that it hosts or hosted

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
	No      uint64 // counts the events of the cell: the order within a millisecond
	Changed uint64
}

// Creation remembers that a creator made a game session, as long as the creation policy counts it.
type Creation struct {
	FleetID, Creator string
	At, Until        domain.Time
	Changed          uint64
}

// Sweeps reports whether something of the fleet is being deleted.
func (f *Fleet) Sweeps() bool {
	for _, l := range f.Locations {
		if l.Status == Deleting {
			return true
		}
	}
	return f.Status == Deleting
}
