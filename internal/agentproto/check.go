package agentproto

import (
	"fmt"
	"slices"
	"strings"
)

func (m *SendHeartbeat) check() error {
	var c checker
	known := []Status{Initializing, Activating, Active, Terminating, Interrupted, Terminated}
	if i := slices.IndexFunc(known, func(s Status) bool { return strings.EqualFold(string(s), string(m.Status)) }); i >= 0 {
		m.Status = known[i]
	} else {
		c.wrong("Status", shown(string(m.Status)), "Initializing, Activating, Active, Terminating, Interrupted or Terminated")
	}
	c.many("ProcessList", len(m.ProcessList), 0, ProcessesMax)
	c.many("Processes", len(m.Processes), 0, ProcessesMax)
	c.many("Launches", len(m.Launches), 0, LaunchesMax)
	if c.err != nil {
		return c.done()
	}
	for i, id := range m.ProcessList {
		c.text(fmt.Sprintf("ProcessList[%d]", i), id, 1, IDBytes)
	}
	for i := range m.Processes {
		m.Processes[i].check(&c, fmt.Sprintf("Processes[%d]", i))
	}
	for i := range m.Launches {
		m.Launches[i].check(&c, fmt.Sprintf("Launches[%d]", i))
	}
	if m.Metrics != nil {
		m.Metrics.check(&c)
	}
	return c.done()
}

func (p *ProcessState) check(c *checker, at string) {
	c.text(at+".ProcessId", p.ProcessID, 1, IDBytes)
	c.text(at+".State", p.State, 0, NameBytes)
	c.number(at+".Port", int64(p.Port), 0, 65535)
	c.amount(at+".Pid", int64(p.PID))
	c.amount(at+".Restarts", int64(p.Restarts))
	c.share(at+".CPUPercent", p.CPUPercent)
	c.amount(at+".MemoryBytes", p.MemoryBytes)
	c.amount(at+".StartedMillis", p.StartedMillis)
}

func (l *LaunchState) check(c *checker, at string) {
	c.text(at+".LaunchPath", l.LaunchPath, 0, LaunchBytes)
	c.text(at+".Parameters", l.Parameters, 0, LaunchBytes)
	c.text(at+".State", l.State, 0, NameBytes)
	c.text(at+".Cause", l.Cause, 0, NameBytes)
	c.text(at+".Reason", l.Reason, 0, TextBytes)
	c.amount(at+".Wanted", int64(l.Wanted))
	c.amount(at+".Running", int64(l.Running))
	c.amount(at+".Crashes", int64(l.Crashes))
	c.amount(at+".NextTryMillis", l.NextTryMillis)
}

func (m *HostMetrics) check(c *checker) {
	c.share("Metrics.CPUPercent", m.CPUPercent)
	c.share("Metrics.Load1", m.Load1)
	c.amount("Metrics.MemoryTotalBytes", m.MemoryTotalBytes)
	c.amount("Metrics.MemoryUsedBytes", m.MemoryUsedBytes)
	c.amount("Metrics.DiskTotalBytes", m.DiskTotalBytes)
	c.amount("Metrics.DiskFreeBytes", m.DiskFreeBytes)
	c.amount("Metrics.NetworkInBytes", m.NetworkInBytes)
	c.amount("Metrics.NetworkOutBytes", m.NetworkOutBytes)
	c.amount("Metrics.DiskReadBytes", m.DiskReadBytes)
	c.amount("Metrics.DiskWriteBytes", m.DiskWriteBytes)
	c.amount("Metrics.DiskReadOps", m.DiskReadOps)
	c.amount("Metrics.DiskWriteOps", m.DiskWriteOps)
	c.amount("Metrics.OpenFiles", int64(m.OpenFiles))
	c.amount("Metrics.PortsUsed", int64(m.PortsUsed))
	c.amount("Metrics.PortsFree", int64(m.PortsFree))
	c.amount("Metrics.AgentMemoryBytes", m.AgentMemoryBytes)
}

func (*DescribeRuntimeConfiguration) check() error { return nil }

func (m *NotifyServerProcessTermination) check() error {
	var c checker
	c.text("ProcessId", m.ProcessID, 1, IDBytes)
	if !slices.Contains(Reasons, m.TerminationReason) {
		c.wrong("TerminationReason", shown(string(m.TerminationReason)), "a termination reason, such as "+string(Crashed))
	}
	if m.EventCode != "" && m.EventCode != m.TerminationReason.EventCode() {
		c.wrong("EventCode", shown(string(m.EventCode)), "null, or the text of TerminationReason")
	}
	if x := m.Exit; x != nil {
		c.text("Exit.Signal", x.Signal, 0, NameBytes)
		c.text("Exit.CoreFile", x.CoreFile, 0, PathBytes)
		c.text("Exit.LastOutput", x.LastOutput, 0, LastOutputMax)
		c.amount("Exit.PeakMemoryBytes", x.PeakMemoryBytes)
		c.amount("Exit.MemoryBytes", x.MemoryBytes)
		c.amount("Exit.StartedMillis", x.StartedMillis)
		c.amount("Exit.EndedMillis", x.EndedMillis)
		c.amount("Exit.Restarts", int64(x.Restarts))
	}
	return c.done()
}

func (m *GetFleetRoleCredentials) check() error {
	var c checker
	c.text("RoleSessionName", m.RoleSessionName, 0, NameBytes)
	return c.done()
}

func (m *AgentHello) check() error {
	var c checker
	c.text("Version", m.Version, 1, NameBytes)
	c.text("OS", m.OS, 1, NameBytes)
	c.text("Arch", m.Arch, 1, NameBytes)
	c.text("HostName", m.HostName, 0, NameBytes)
	c.text("Ports", m.Ports, 0, NameBytes)
	c.text("BootId", m.BootID, 0, NameBytes)
	c.number("CPUs", int64(m.CPUs), 0, 1<<20)
	c.amount("MemoryMB", m.MemoryMB)
	c.amount("StartedMillis", m.StartedMillis)
	return c.done()
}

func (*GetServerToken) check() error { return nil }

func (m *SendOutput) check() error {
	var c checker
	c.text("StreamId", m.StreamID, 1, NameBytes)
	c.amount("Number", m.Number)
	c.text("Output", m.Output, 0, OutputMax)
	c.text("Error", m.Error, 0, TextBytes)
	return c.done()
}

func (m *RequestLogUpload) check() error {
	var c checker
	c.text("ProcessId", m.ProcessID, 1, IDBytes)
	c.text("GameSessionId", m.GameSessionID, 0, IDBytes)
	return c.done()
}

func (m *LogUpload) check() error {
	var c checker
	c.text("Url", m.URL, 1, URLBytes)
	return c.done()
}

func (m *NotifyProcessRegistered) check() error {
	var c checker
	c.text("ProcessId", m.ProcessID, 1, IDBytes)
	c.many("LogPaths", len(m.LogPaths), 1, LogPathsMax)
	for i, path := range m.LogPaths {
		c.text(fmt.Sprintf("LogPaths[%d]", i), path, 0, PathBytes)
	}
	return c.done()
}

func (m *NotifyGameSessionActivated) check() error {
	var c checker
	c.text("ProcessId", m.ProcessID, 1, IDBytes)
	c.text("GameSessionId", m.GameSessionID, 1, IDBytes)
	return c.done()
}

func (m *ForceExitServerProcess) check() error {
	var c checker
	c.text("ProcessId", m.ProcessID, 1, IDBytes)
	c.text("TerminationReason", string(m.TerminationReason), 0, NameBytes) // an agent takes an unknown one for NORMAL_TERMINATION
	return c.done()
}

func (m *ForceExitProcess) check() error {
	var c checker
	c.text("ProcessId", m.ProcessID, 1, IDBytes)
	return c.done()
}

func (m *RefreshConnection) check() error {
	var c checker
	c.text("RefreshConnectionEndpoint", m.RefreshConnectionEndpoint, 1, URLBytes)
	c.text("AuthToken", m.AuthToken, 1, IDBytes)
	c.text("ExpirationTime", m.ExpirationTime, 0, NameBytes)
	return c.done()
}

func (*StartComputeTermination) check() error { return nil }

func (m *DrainCompute) check() error {
	var c checker
	c.amount("DeadlineMillis", m.DeadlineMillis)
	c.text("Reason", m.Reason, 0, TextBytes)
	return c.done()
}

func (m *RuntimeConfiguration) check() error {
	var c checker
	c.amount("GameSessionActivationTimeoutSeconds", int64(m.GameSessionActivationTimeoutSeconds))
	c.amount("MaxConcurrentGameSessionActivations", int64(m.MaxConcurrentGameSessionActivations))
	c.many("ServerProcesses", len(m.ServerProcesses), 0, LaunchesMax)
	if c.err != nil {
		return c.done()
	}
	for i := range m.ServerProcesses {
		p, at := &m.ServerProcesses[i], fmt.Sprintf("ServerProcesses[%d]", i)
		c.text(at+".LaunchPath", p.LaunchPath, 1, LaunchBytes)
		c.text(at+".Parameters", p.Parameters, 0, LaunchBytes)
		c.number(at+".ConcurrentExecutions", int64(p.ConcurrentExecutions), 1, ProcessesMax)
	}
	if b := m.Build; b != nil {
		c.text("Build.BuildId", b.BuildID, 1, IDBytes)
		c.text("Build.Digest", b.Digest, 64, 64)
		c.text("Build.Url", b.URL, 0, URLBytes)
	}
	return c.done()
}

func (m *HelloAnswer) check() error {
	var c checker
	c.text("HostId", m.HostID, 0, IDBytes)
	c.text("FleetId", m.FleetID, 0, IDBytes)
	c.text("ComputeName", m.ComputeName, 0, IDBytes)
	c.text("Location", m.Location, 0, IDBytes)
	c.text("GameLiftServiceSdkEndpoint", m.SDKEndpoint, 0, URLBytes)
	c.amount("HeartbeatMillis", m.HeartbeatMillis)
	return c.done()
}

func (m *StartOutput) check() error {
	var c checker
	c.text("StreamId", m.StreamID, 1, NameBytes)
	c.text("ProcessId", m.ProcessID, 1, IDBytes)
	c.number("TailBytes", int64(m.TailBytes), 0, TailMax)
	c.number("TailLines", int64(m.TailLines), 0, TailMax)
	return c.done()
}

func (m *StopOutput) check() error {
	var c checker
	c.text("StreamId", m.StreamID, 1, NameBytes)
	return c.done()
}

func (m *HostShared) check() error {
	var c checker
	c.many("Addresses", len(m.Addresses), 0, ProcessesMax)
	for _, a := range m.Addresses {
		c.text("Addresses", a, 0, NameBytes)
	}
	return c.done()
}

func (m *HeartbeatAnswer) check() error {
	var c checker
	c.text("Status", string(m.Status), 1, NameBytes)
	c.many("UnhealthyProcesses", len(m.UnhealthyProcesses), 0, ProcessesMax)
	c.many("UnregisteredProcesses", len(m.UnregisteredProcesses), 0, ProcessesMax)
	m.Status = Order(strings.ToUpper(string(m.Status)))
	return c.done()
}

func (m *ServerToken) check() error {
	var c checker
	c.text("AuthToken", m.AuthToken, 1, IDBytes)
	return c.done()
}

func (m *RoleCredentials) check() error { return nil }
