package heap

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
)

// Memory returns that of the machine, and the limit of the control group; 0: it has none.
func Memory() (total, limit uint64, ok bool) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, 0, false
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) > 1 && f[0] == "MemTotal:" {
			kib, err := strconv.ParseUint(f[1], 10, 64)
			if err != nil {
				return 0, 0, false
			}
			total = kib << 10
		}
	}
	if text, err = os.ReadFile("/proc/self/cgroup"); err == nil {
		if _, path, found := strings.Cut(strings.TrimSpace(string(text)), "0::"); found {
			if text, err := os.ReadFile("/sys/fs/cgroup" + path + "/memory.max"); err == nil {
				limit, _ = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64) // "max" is no number, and no limit
			}
		}
	}
	return total, limit, total > 0
}
