//go:build !linux

package usage

import "runtime"

// OfProcesses measures nothing here.
func OfProcesses([]int) Process { return Process{} }

// OfHost measures only the agent's own memory here.
func OfHost(string) Host {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Host{AgentMemory: int64(m.Sys)}
}
