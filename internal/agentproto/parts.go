package agentproto

// Status is the state of an agent, as its heartbeats tell it.
type Status string

// The states of an agent.
const (
	Initializing Status = "Initializing"
	Activating   Status = "Activating"
	Active       Status = "Active"
	Terminating  Status = "Terminating" // it drains: its processes finish and no new ones start
	Interrupted  Status = "Interrupted" // the same, because the host goes away soon
	Terminated   Status = "Terminated"  // its last heartbeat
)

// Order is the state that the service wants an agent to have; the answer to each heartbeat has it.
type Order string

// The orders. An agent in state Initializing starts nothing before one of OrderInitializing and OrderActive.
const (
	OrderPending      Order = "PENDING" // the host has no fleet yet
	OrderInitializing Order = "INITIALIZING"
	OrderActive       Order = "ACTIVE"
	OrderTerminating  Order = "TERMINATING"
	OrderTerminated   Order = "TERMINATED"
)

// EventCode is the fleet event that the end of a server process becomes.
type EventCode string

// TerminationReason is why a server process ended.
type TerminationReason string

// The reasons with an event. The event code has the same text.
const (
	Crashed                  TerminationReason = "SERVER_PROCESS_CRASHED"
	ForceTerminated          TerminationReason = "SERVER_PROCESS_FORCE_TERMINATED"
	InvalidPath              TerminationReason = "SERVER_PROCESS_INVALID_PATH" // with an id that no process had
	ExitTimeout              TerminationReason = "SERVER_PROCESS_PROCESS_EXIT_TIMEOUT"
	ReadyTimeout             TerminationReason = "SERVER_PROCESS_PROCESS_READY_TIMEOUT"
	SDKInitializationTimeout TerminationReason = "SERVER_PROCESS_SDK_INITIALIZATION_TIMEOUT"
	TerminatedUnhealthy      TerminationReason = "SERVER_PROCESS_TERMINATED_UNHEALTHY"
)

// The reasons without an event.
const (
	ComputeShuttingDown TerminationReason = "COMPUTE_SHUTTING_DOWN"
	CustomerInitiated   TerminationReason = "CUSTOMER_INITIATED"
	NormalTermination   TerminationReason = "NORMAL_TERMINATION"
)

// Reasons lists all of them, those with an event first.
var Reasons = []TerminationReason{
	Crashed, ForceTerminated, InvalidPath, ExitTimeout, ReadyTimeout, SDKInitializationTimeout, TerminatedUnhealthy,
	ComputeShuttingDown, CustomerInitiated, NormalTermination,
}

// EventCode returns the event that the reason becomes, or "".
func (r TerminationReason) EventCode() EventCode {
	switch r {
	case Crashed, ForceTerminated, InvalidPath, ExitTimeout, ReadyTimeout, SDKInitializationTimeout, TerminatedUnhealthy:
		return EventCode(r)
	}
	return ""
}

// Exit is how a server process ended.
type Exit struct {
	Code            *int   `json:",omitzero"` // none after a signal, and when the agent was not there to see it
	Signal          string `json:",omitzero"` // name of the signal that ended it: SIGSEGV
	PeakMemoryBytes int64  `json:",omitzero"` // the most that it had
	MemoryBytes     int64  `json:",omitzero"` // what it had when it was last measured
	CoreFile        string `json:",omitzero"` // path on the host
	LastOutput      string `json:",omitzero"` // the end of what it wrote to standard output and standard error
	StartedMillis   int64  `json:",omitzero"`
	EndedMillis     int64  `json:",omitzero"`
	Restarts        int    `json:",omitzero"` // of its entry in the runtime configuration, within the crash window
}

// ProcessState is what `muster agent` tells of a server process that runs.
type ProcessState struct {
	ProcessID     string  `json:"ProcessId"`
	PID           int     `json:"Pid"`
	Port          int     `json:",omitzero"` // that the agent gave it; 0: none
	Restarts      int     `json:",omitzero"` // of its entry, within the crash window
	State         string  // Starting, Running, Stopping
	CPUPercent    float64 `json:",omitzero"` // of one processor
	MemoryBytes   int64   `json:",omitzero"`
	StartedMillis int64   `json:",omitzero"`
}

// States of a server process at its agent.
const (
	ProcessStarting = "Starting" // it has not been registered by a server SDK
	ProcessRunning  = "Running"
	ProcessStopping = "Stopping"
)

// LaunchState is what `muster agent` tells of an entry of the runtime configuration.
type LaunchState struct {
	LaunchPath    string
	Parameters    string `json:",omitzero"`
	Wanted        int
	Running       int
	Crashes       int    `json:",omitzero"` // within the crash window
	State         string // Running, BackingOff, Failed, Fetching
	NextTryMillis int64  `json:",omitzero"`
	Cause         string `json:",omitzero"` // why it does not run: BuildNotFetched, PathNotFound, Crashed, NotStarted
	Reason        string `json:",omitzero"` // the same for people, with what the system said
}

// Why an entry of the runtime configuration does not run.
const (
	CauseBuild   = "BuildNotFetched"
	CausePath    = "PathNotFound"
	CauseCrash   = "Crashed"
	CauseNoStart = "NotStarted" // for another reason, such as a lack of ports
)

// Report is what the service keeps of an agent's last heartbeat.
type Report struct {
	Host           string // id; empty: an agent that came with a compute's token
	Fleet, Compute string // that it is
	Metrics        *HostMetrics
	Launches       []LaunchState
	Shared         []string // addresses of agents that take this host from each other, each with a copy of its identity; nil: there is one agent
}

// States of an entry of the runtime configuration.
const (
	LaunchRunning    = "Running"
	LaunchBackingOff = "BackingOff" // its last process crashed; the next one starts after a pause
	LaunchFailed     = "Failed"     // too many crashed; it is probed now and then
	LaunchFetching   = "Fetching"   // its build is on its way to the host
)

// HostMetrics is what `muster agent` measures on its host.
type HostMetrics struct {
	CPUPercent       float64 // of all processors
	Load1            float64 `json:",omitzero"`
	MemoryTotalBytes int64
	MemoryUsedBytes  int64
	DiskTotalBytes   int64 `json:",omitzero"` // of the file system with the server processes' files
	DiskFreeBytes    int64 // also when it is 0, which matters most
	NetworkInBytes   int64 `json:",omitzero"` // since the host started
	NetworkOutBytes  int64 `json:",omitzero"`
	DiskReadBytes    int64 `json:",omitzero"` // since the host started, of all disks
	DiskWriteBytes   int64 `json:",omitzero"`
	DiskReadOps      int64 `json:",omitzero"`
	DiskWriteOps     int64 `json:",omitzero"`
	OpenFiles        int   `json:",omitzero"`
	PortsUsed        int   `json:",omitzero"`
	PortsFree        int   `json:",omitzero"`
	AgentMemoryBytes int64 `json:",omitzero"`
}
