package agentproto

// HeartbeatAnswer answers SendHeartbeat.
type HeartbeatAnswer struct {
	Status                Order
	UnhealthyProcesses    []string // the agent ends these
	UnregisteredProcesses []string // the agent ends one that was in eight answers in a row
}

// RuntimeConfiguration answers DescribeRuntimeConfiguration, and is the content of UpdateRuntimeConfiguration.
type RuntimeConfiguration struct {
	GameSessionActivationTimeoutSeconds int `json:",omitzero"` // agents do not use it
	MaxConcurrentGameSessionActivations int `json:",omitzero"` // agents do not use it
	ServerProcesses                     []ServerProcess

	Build *Build `json:",omitzero"` // for `muster agent`: what the launch paths are relative to; nil: files that are on the host already
}

// ServerProcess is an entry of a runtime configuration.
type ServerProcess struct {
	LaunchPath           string
	ConcurrentExecutions int
	Parameters           string `json:",omitzero"`
}

// Build names the files of a build. The agent gets them from URL and checks them against the digest before any of them runs.
type Build struct {
	BuildID string `json:"BuildId"`
	Digest  string // SHA-256 of the build's manifest, in hexadecimal digits
	URL     string `json:"Url"` // of the manifest, for some hours: DescribeRuntimeConfiguration returns another one; empty: the service does not have the files
}

// RoleCredentials answers GetFleetRoleCredentials.
type RoleCredentials struct {
	AssumedRoleUserArn string
	AssumedRoleID      string `json:"AssumedRoleId"`
	AccessKeyID        string `json:"AccessKeyId"`
	SecretAccessKey    string
	SessionToken       string
	Expiration         int64 // milliseconds since 1970
}

// HelloAnswer answers AgentHello: what this host is to the service.
type HelloAnswer struct {
	HostID      string `json:"HostId,omitzero"` // empty for an agent that came with a compute's token
	FleetID     string `json:"FleetId"`         // empty: the host has no fleet yet, and runs nothing
	ComputeName string
	Location    string
	SDKEndpoint string `json:"GameLiftServiceSdkEndpoint"` // where its server processes connect

	HeartbeatMillis int64 // how often to send a heartbeat
}

// ServerToken answers GetServerToken.
type ServerToken struct {
	FleetID             string `json:"FleetId"`
	ComputeName         string
	AuthToken           string
	ExpirationTimestamp int64 // seconds since 1970
}

// LogUpload answers RequestLogUpload.
type LogUpload struct {
	URL string `json:"Url"` // for one PUT of a zip of at most LogBundleMax bytes, within the hour
}
