package usage

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of processor time in /proc: USER_HZ is 100 on all architectures that Go supports.
const tick = 10 * time.Millisecond

var pageSize = int64(os.Getpagesize())

// OfProcesses returns the total usage of processes. Those that have ended meanwhile are not counted.
func OfProcesses(pids []int) (p Process) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 22 {
			continue
		}
		p.CPU += time.Duration(number(fields[11])+number(fields[12])) * tick // utime, stime
		p.Memory += number(fields[21]) * pageSize                            // rss
	}
	return p
}

// OfHost measures the host; the disk figures are of the file system that contains dir.
func OfHost(dir string) (h Host) {
	if text, err := os.ReadFile("/proc/stat"); err == nil {
		line, _, _ := strings.Cut(string(text), "\n")
		h.Busy, h.Idle = processors(line)
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		h.Load1, _ = strconv.ParseFloat(first, 64)
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		h.Memory = kilobytes(string(text), "MemTotal:")
		h.MemoryUsed = h.Memory - kilobytes(string(text), "MemAvailable:")
	}
	var disk unix.Statfs_t
	if unix.Statfs(dir, &disk) == nil {
		h.Disk, h.DiskFree = int64(disk.Blocks)*int64(disk.Bsize), int64(disk.Bavail)*int64(disk.Bsize)
	}
	if text, err := os.ReadFile("/proc/net/dev"); err == nil {
		h.NetworkIn, h.NetworkOut = network(string(text))
	}
	if text, err := os.ReadFile("/proc/diskstats"); err == nil {
		h.disks(string(text), func(name string) bool {
			_, err := os.Stat("/sys/block/" + strings.ReplaceAll(name, "/", "!") + "/device")
			return err == nil
		})
	}
	if text, err := os.ReadFile("/proc/sys/fs/file-nr"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 0 {
			h.OpenFiles = int(number(fields[0]))
		}
	}
	h.AgentMemory = OfProcesses([]int{os.Getpid()}).Memory
	return h
}

// processors parses the line of all processors in /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
func processors(line string) (busy, idle time.Duration) {
	for i, field := range strings.Fields(line) {
		switch i {
		case 0:
		case 4, 5:
			idle += time.Duration(number(field)) * tick
		case 1, 2, 3, 6, 7, 8:
			busy += time.Duration(number(field)) * tick
		}
	}
	return busy, idle
}

func kilobytes(text, name string) int64 {
	_, after, found := strings.Cut(text, name)
	fields := strings.Fields(after)
	if !found || len(fields) == 0 {
		return 0
	}
	return number(fields[0]) << 10
}

// network returns the total bytes of all interfaces except loopback.
func network(text string) (in, out int64) {
	for line := range strings.Lines(text) {
		name, counters, found := strings.Cut(line, ":")
		fields := strings.Fields(counters)
		if !found || strings.TrimSpace(name) == "lo" || len(fields) < 9 {
			continue
		}
		in, out = in+number(fields[0]), out+number(fields[8])
	}
	return in, out
}

// sector is the unit of /proc/diskstats, whatever the disk's own sector size is.
const sector = 512

// disks adds up the reads and writes of disks. It ignores partitions and virtual devices, which consist of others, because the disks below them
// already count their traffic.
func (h *Host) disks(text string, isDisk func(name string) bool) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line) // major, minor, name, reads, merged, sectors, ms, writes, merged, sectors
		if len(fields) < 10 || !isDisk(fields[2]) {
			continue
		}
		h.DiskReads, h.DiskRead = h.DiskReads+number(fields[3]), h.DiskRead+number(fields[5])*sector
		h.DiskWrites, h.DiskWritten = h.DiskWrites+number(fields[7]), h.DiskWritten+number(fields[9])*sector
	}
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
