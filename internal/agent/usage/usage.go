// Package usage measures the resources that a host and its server processes use. It reads /proc on Linux; on other systems it measures nothing and
// returns zeros.
package usage

import "time"

// Process is the resource usage of a server process and its descendants.
type Process struct {
	CPU    time.Duration // since the start of those that are running
	Memory int64         // bytes in memory
}

// Host is the resource usage of a host.
type Host struct {
	Busy, Idle     time.Duration // of all processors, since the start
	Load1          float64
	Memory         int64 // bytes
	MemoryUsed     int64
	Disk, DiskFree int64 // of the file system with a directory
	NetworkIn      int64 // bytes since the start, without loopback
	NetworkOut     int64
	DiskRead       int64 // bytes since the start, of all disks
	DiskWritten    int64
	DiskReads      int64 // operations
	DiskWrites     int64
	OpenFiles      int
	AgentMemory    int64
}

// CPUPercent returns how busy the processors were between two measurements.
func CPUPercent(before, now Host) float64 {
	busy, all := now.Busy-before.Busy, now.Busy-before.Busy+now.Idle-before.Idle
	if all <= 0 || busy < 0 {
		return 0
	}
	return 100 * float64(busy) / float64(all)
}
