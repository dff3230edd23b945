package agentproto

// Request is a message from an agent to the service. The official agent sends the first four; the others are additions of `muster agent`.
type Request interface {
	// Action is the name of the request on the wire.
	Action() string
	check() error
}

// SendHeartbeat says that the agent is alive and which server processes it runs. Its answer is a HeartbeatAnswer.
type SendHeartbeat struct {
	Status              Status
	ProcessList         []string // ids of the server processes that run
	HeartbeatTimeMillis int64    // the agent's clock, in milliseconds since 1970

	// Additions of `muster agent`.
	Processes []ProcessState `json:",omitzero"` // more about the same processes
	Launches  []LaunchState  `json:",omitzero"` // one for each entry of the runtime configuration
	Metrics   *HostMetrics   `json:",omitzero"`
}

// DescribeRuntimeConfiguration asks which server processes the host shall run. Its answer is a RuntimeConfiguration.
type DescribeRuntimeConfiguration struct{}

// NotifyServerProcessTermination says that a server process has ended. It may be repeated.
type NotifyServerProcessTermination struct {
	ProcessID         string    `json:"ProcessId"`
	EventCode         EventCode // none for an end that is no failure
	TerminationReason TerminationReason

	Exit *Exit `json:",omitzero"` // an addition of `muster agent`
}

// GetFleetRoleCredentials asks for AWS credentials of the fleet's role.
type GetFleetRoleCredentials struct {
	RoleSessionName string
}

// AgentHello is the first request of `muster agent` on each connection. Its answer is a HelloAnswer.
type AgentHello struct {
	Version  string // of the agent
	OS       string // GOOS of the host: linux, windows, darwin
	Arch     string // GOARCH of the host
	HostName string `json:",omitzero"`
	CPUs     int
	MemoryMB int64
	Ports    string // the pool of ports for server processes, as in --ports: "7000-7999"; may be empty

	// BootID changes when the host restarts: server processes of another boot are gone.
	BootID        string `json:"BootId,omitzero"`
	StartedMillis int64  `json:",omitzero"` // when the agent started
}

// GetServerToken asks for a short-lived token with which server processes of this host connect. Its answer is a ServerToken.
type GetServerToken struct{}

// SendOutput carries what a server process wrote, in answer to a StartOutput push. The agent sends one at a time, and one without output at least
// every 15 seconds, since the service gives up a stream that is silent. The service answers with status 429 when the reader has not taken enough yet:
// the agent sends the same message again later. It answers with status 404 once the stream has no reader, and the agent then stops it.
type SendOutput struct {
	StreamID  string `json:"StreamId"`
	Number    int64  `json:",omitzero"` // counts the messages of the stream from 1, so that the service recognizes one that is sent again
	Output    string
	End       bool   `json:",omitzero"` // nothing follows
	Error     string `json:",omitzero"` // why nothing follows, if not because the output ended
	Truncated bool   `json:",omitzero"` // output before this was left out, because it came faster than the connection took it
}

// RequestLogUpload asks where the logs of a server process that has ended are uploaded, for its game session. Its answer is a LogUpload. Status 404 says that the
// service wants none: the process had no game session, or the installation keeps no logs. Status 412 says that the
// session has not ended for the service yet.
type RequestLogUpload struct {
	ProcessID     string `json:"ProcessId"`
	GameSessionID string `json:"GameSessionId,omitzero"` // if the agent was told of one
}

// Action implements Request.
func (*SendHeartbeat) Action() string { return "SendHeartbeat" }

// Action implements Request.
func (*DescribeRuntimeConfiguration) Action() string { return "DescribeRuntimeConfiguration" }

// Action implements Request.
func (*NotifyServerProcessTermination) Action() string { return "NotifyServerProcessTermination" }

// Action implements Request.
func (*GetFleetRoleCredentials) Action() string { return "GetFleetRoleCredentials" }

// Action implements Request.
func (*AgentHello) Action() string { return "AgentHello" }

// Action implements Request.
func (*GetServerToken) Action() string { return "GetServerToken" }

// Action implements Request.
func (*SendOutput) Action() string { return "SendOutput" }

// Action implements Request.
func (*RequestLogUpload) Action() string { return "RequestLogUpload" }

func newRequest(action string) Request {
	switch action {
	case "SendHeartbeat":
		return new(SendHeartbeat)
	case "DescribeRuntimeConfiguration":
		return new(DescribeRuntimeConfiguration)
	case "NotifyServerProcessTermination":
		return new(NotifyServerProcessTermination)
	case "GetFleetRoleCredentials":
		return new(GetFleetRoleCredentials)
	case "AgentHello":
		return new(AgentHello)
	case "GetServerToken":
		return new(GetServerToken)
	case "SendOutput":
		return new(SendOutput)
	case "RequestLogUpload":
		return new(RequestLogUpload)
	}
	return nil
}
