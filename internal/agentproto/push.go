package agentproto

// Push is a message from the service to an agent that gets no answer. Official agents get the first six; the others are additions for
// `muster agent`.
type Push interface {
	// Action is the name of the push on the wire.
	Action() string
	check() error
}

// NotifyProcessRegistered says that a server process has called ProcessReady. The official agent ignores it without log paths, and
// ends the process five minutes after its start.
type NotifyProcessRegistered struct {
	ProcessID string   `json:"ProcessId"`
	LogPaths  []string // never empty: NoLogPaths when the process named none
}

// NoLogPaths stands for the log paths of a process that named none: a path that no process writes to.
var NoLogPaths = []string{"/nonexistent"}

// NotifyGameSessionActivated says which game session a process hosts. The id names the bundle of its logs.
type NotifyGameSessionActivated struct {
	ProcessID     string `json:"ProcessId"`
	GameSessionID string `json:"GameSessionId"`
}

// ForceExitServerProcess ends a process at once. An agent ignores an unknown process.
type ForceExitServerProcess struct {
	ProcessID         string `json:"ProcessId"`
	TerminationReason TerminationReason
}

// ForceExitProcess is the deprecated form of ForceExitServerProcess. The service does not send it; agents accept it.
type ForceExitProcess struct {
	ProcessID string `json:"ProcessId"`
}

// RefreshConnection asks the agent to open another connection, with this token, and to close the present one later.
type RefreshConnection struct {
	RefreshConnectionEndpoint string
	AuthToken                 string
	ExpirationTime            string // seconds since 1970, as text
}

// StartComputeTermination makes the official agent drain its host, within six minutes.
type StartComputeTermination struct{}

// DrainCompute makes `muster agent` drain its host: it starts nothing more, idle processes end, those with a game session finish.
type DrainCompute struct {
	DeadlineMillis int64  // what runs then is ended, in milliseconds since 1970; 0: it may finish at any time
	Reason         string `json:",omitzero"`
	Cancel         bool   `json:",omitzero"` // ends a drain: the host runs processes again
}

// UpdateRuntimeConfiguration replaces the runtime configuration, so that a change acts at once.
type UpdateRuntimeConfiguration struct {
	RuntimeConfiguration
}

// UpdateHost says that what HelloAnswer said has changed: the host has another fleet, or none. Its processes of the fleet before end
// as in a drain.
type UpdateHost struct {
	HelloAnswer
}

// StartOutput asks for the output of a process. The agent sends it as SendOutput.
type StartOutput struct {
	StreamID  string `json:"StreamId"`
	ProcessID string `json:"ProcessId"`
	TailBytes int    // how much of what it has written already
	TailLines int    `json:",omitzero"` // of these bytes, the last lines only; 0: all
	Follow    bool   `json:",omitzero"` // and what it writes from now on
}

// StopOutput ends a stream of StartOutput.
type StopOutput struct {
	StreamID string `json:"StreamId"`
}

// HostShared says that another agent connects as the same host: a copy of its state directory is on another machine. The service sends it to the connections of both
// that it has, every few minutes for as long as that lasts.
type HostShared struct {
	Addresses []string // from which agents are connected as this host
}

// Action implements Push.
func (*NotifyProcessRegistered) Action() string { return "NotifyProcessRegistered" }

// Action implements Push.
func (*NotifyGameSessionActivated) Action() string { return "NotifyGameSessionActivated" }

// Action implements Push.
func (*ForceExitServerProcess) Action() string { return "ForceExitServerProcess" }

// Action implements Push.
func (*ForceExitProcess) Action() string { return "ForceExitProcess" }

// Action implements Push.
func (*RefreshConnection) Action() string { return "RefreshConnection" }

// Action implements Push.
func (*StartComputeTermination) Action() string { return "StartComputeTermination" }

// Action implements Push.
func (*DrainCompute) Action() string { return "DrainCompute" }

// Action implements Push.
func (*UpdateRuntimeConfiguration) Action() string { return "UpdateRuntimeConfiguration" }

// Action implements Push.
func (*UpdateHost) Action() string { return "UpdateHost" }

// Action implements Push.
func (*StartOutput) Action() string { return "StartOutput" }

// Action implements Push.
func (*StopOutput) Action() string { return "StopOutput" }

// Action implements Push.
func (*HostShared) Action() string { return "HostShared" }

func newPush(action string) Push {
	switch action {
	case "NotifyProcessRegistered":
		return new(NotifyProcessRegistered)
	case "NotifyGameSessionActivated":
		return new(NotifyGameSessionActivated)
	case "ForceExitServerProcess":
		return new(ForceExitServerProcess)
	case "ForceExitProcess":
		return new(ForceExitProcess)
	case "RefreshConnection":
		return new(RefreshConnection)
	case "StartComputeTermination":
		return new(StartComputeTermination)
	case "DrainCompute":
		return new(DrainCompute)
	case "UpdateRuntimeConfiguration":
		return new(UpdateRuntimeConfiguration)
	case "UpdateHost":
		return new(UpdateHost)
	case "StartOutput":
		return new(StartOutput)
	case "StopOutput":
		return new(StopOutput)
	case "HostShared":
		return new(HostShared)
	}
	return nil
}
