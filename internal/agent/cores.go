package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// findCore returns the path of a process's core dump, if it is a file in the kernel's core dump directory. If the host pipes core dumps to a program,
// it returns that program, because only the program knows where the dump is.
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
	formatted = formatted && !strings.Contains(name, "%p") // without the process id, take the newest match
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
