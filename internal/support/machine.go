package support

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fileMax limits the bytes from one file of the operating system.
const fileMax = 64 << 10

// machineFiles are Linux's files about this process and its machine. None contains a secret: environment and arguments of processes are not among them.
var machineFiles = []string{
	"/proc/self/limits", "/proc/self/status", "/proc/meminfo", "/proc/loadavg", "/proc/version", "/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory",
	"/proc/sys/net/core/somaxconn", "/proc/sys/net/ipv4/ip_local_port_range", "/proc/sys/fs/file-nr", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
	"/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu.stat", "/etc/os-release",
}

// Machine adds the facts of this machine and process. dir is the data directory, for the space on its disk.
func (p *Parts) Machine(ctx context.Context, name, dir string) {
	p.Make(ctx, name, "operating system, limits, memory and disk, and what the Go runtime reports about this process", func() ([]byte, error) {
		facts := map[string]any{"process": runtimeFacts()}
		if usage, err := vfs.Default.GetDiskUsage(dir); err == nil {
			facts["disk"] = map[string]uint64{"freeBytes": usage.AvailBytes, "totalBytes": usage.TotalBytes}
		}
		files := map[string][]string{}
		for _, path := range machineFiles {
			if text, ok := readStart(path); ok {
				files[path] = strings.Split(strings.TrimSpace(text), "\n")
			}
		}
		facts["files"] = files
		return indented(facts)
	})
}

func readStart(path string) (string, bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, fileMax))
	return string(text), err == nil
}

func indented(value any) ([]byte, error) {
	text, err := json.MarshalIndent(value, "", "  ")
	return append(text, '\n'), err
}

// directoryEntriesMax limits the number of files that Directory visits.
const directoryEntriesMax = 200_000

// part is a file or directory at the top of the data directory.
type part struct {
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	Newest string `json:"newest,omitempty"` // when the last of its files was written
	Mode   string `json:"mode"`
}

// Directory adds the number and size of the files in each part of the data directory. It reads no content, and works while the service is down.
func (p *Parts) Directory(ctx context.Context, dir string) {
	p.Make(ctx, "data-directory.json", "the parts of the data directory: number, size and age of their files, and no content", func() ([]byte, error) { return sizes(dir) })
}

func sizes(dir string) ([]byte, error) {
	parts, seen, cut := map[string]*part{}, 0, false
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a file that has gone meanwhile, or that this user may not see
		}
		if seen++; seen > directoryEntriesMax {
			cut = true
			return filepath.SkipAll
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == "." {
			return err
		}
		top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		x := parts[top]
		if x == nil {
			x = &part{Mode: info.Mode().String()}
			parts[top] = x
		}
		if !entry.IsDir() {
			x.Files++
			x.Bytes += info.Size()
			x.Newest = max(x.Newest, info.ModTime().UTC().Format("2006-01-02T15:04:05Z"))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return indented(map[string]any{"parts": parts, "cut": cut})
}
