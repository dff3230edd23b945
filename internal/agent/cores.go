package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// findCore returns the core dump of a process, if it is a file in the directory where the kernel puts it. Where the host hands core dumps to a program, it
// returns that program, since only it knows where the dump is.
func findCore(pid int, since time.Time, dir string) string {
	pattern := "core"
	if text, err := os.ReadFile("/proc/sys/kernel/core_pattern"); err == nil {
		pattern = strings.TrimSpace(string(text))
	}
	if program, piped := strings.CutPrefix(pattern, "|"); piped {
		program, _, _ = strings.Cut(program, " ")
		return "handed to " + program
	}
	if filepath.IsAbs(pattern) {
		dir = filepath.Dir(pattern)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	name := filepath.Base(pattern)
	prefix, _, formatted := strings.Cut(name, "%")
	formatted = formatted && !strings.Contains(name, "%p") // without a number: the newest that fits
	best, mine := "", strconv.Itoa(pid)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasPrefix(entry.Name(), prefix) || info.ModTime().Before(since) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		if strings.HasSuffix(entry.Name(), "."+mine) || strings.Contains(name, "%p") && strings.Contains(entry.Name(), mine) {
			return path
		}
		if formatted || entry.Name() == name {
			best = path
		}
	}
	return best
}
