package bench

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the system's processor times: USER_HZ is 100 on every architecture that Go runs on.
const tick = 10 * time.Millisecond

// processorTimeOf returns the processor time of a process so far; 0 where the system does not report it.
func processorTimeOf(process string) time.Duration {
	stat, err := os.ReadFile(filepath.Join("/proc", process, "stat"))
	if err != nil {
		return 0
	}
	// The second field is the name in brackets, which may contain anything; user and system time are the 14th and 15th.
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if errors.Join(err1, err2) != nil {
		return 0
	}
	return time.Duration(user+system) * tick
}

// machineTime returns the busy time of all processors together so far; 0 where the system does not report it.
func machineTime() time.Duration {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(stat), "\n") // cpu user nice system idle iowait irq softirq steal …
	sum := int64(0)
	for i, field := range strings.Fields(line) {
		if n, err := strconv.ParseInt(field, 10, 64); err == nil && i != 4 && i != 5 && i <= 8 {
			sum += n
		}
	}
	return time.Duration(sum) * tick
}

// memoryOf returns a field of a process's status in bytes; 0 where the system does not report it.
func memoryOf(process, field string) int64 {
	status, err := os.ReadFile(filepath.Join("/proc", process, "status"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), field)
	words := strings.Fields(rest[:min(len(rest), 40)])
	if len(words) == 0 {
		return 0
	}
	kilobytes, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return 0
	}
	return kilobytes << 10
}
