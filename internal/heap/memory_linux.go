package heap

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Memory returns that of the machine, and the limit of the control groups; 0: there is none.
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
	return total, groupLimit(os.DirFS("/")), total > 0
}

// groupLimit returns the lowest memory limit of the process's control group and the groups above it, of version 2 or 1; 0: none. A container may
// see the path that its group has outside, but its group is the root of the tree then.
func groupLimit(root fs.FS) (lowest uint64) {
	text, _ := fs.ReadFile(root, "proc/self/cgroup") // without it, nothing is known of a limit
	for line := range strings.Lines(string(text)) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(line, ":")
		tree, file := "sys/fs/cgroup", "memory.max"
		if controllers != "" {
			if !slices.Contains(strings.Split(controllers, ","), "memory") {
				continue
			}
			tree, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for group = path.Clean("/" + group); ; group = path.Dir(group) {
			text, _ := fs.ReadFile(root, path.Join(tree, group, file))
			limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
			if err == nil && limit < unlimited && (lowest == 0 || limit < lowest) { // "max" is no number
				lowest = limit
			}
			if group == "/" {
				break
			}
		}
	}
	return lowest
}

// unlimited: version 1 shows no limit as 2^63, rounded down to a page.
const unlimited = 1 << 62
