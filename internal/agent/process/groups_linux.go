package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Groups creates a cgroup for each process, below one directory.
type Groups struct {
	dir  string   // empty: no cgroups
	why  string   // why there are no cgroups
	lock *os.File // of the directory, while this agent lives; nil without cgroups
}

// NewGroups returns the groups below a directory of a cgroup2 file system. If dir is empty, it is the agent's own cgroup, or its parent if its own is
// called agent, as DelegateSubgroup=agent of systemd sets it up. If the agent cannot create cgroups there, or dir is "none", processes get none.
func NewGroups(dir string) (*Groups, error) {
	if dir == "none" {
		return &Groups{why: "switched off"}, nil
	}
	named := dir != ""
	if !named {
		own, err := ownCgroup()
		if err != nil {
			return &Groups{why: err.Error()}, nil
		}
		dir = own
	}
	lock := share(dir)
	probe := filepath.Join(dir, fmt.Sprintf("muster-probe-%d", os.Getpid()))
	err := os.Mkdir(probe, 0o755)
	if err == nil {
		_, err = os.Stat(filepath.Join(probe, "cgroup.kill")) // Linux 5.14
		os.Remove(probe)
	}
	if err == nil {
		err = canStartInside()
	}
	if err != nil && lock != nil {
		lock.Close()
	}
	if err != nil && named {
		return nil, fmt.Errorf("cgroup %s: %w; want a directory of a cgroup2 file system in which the agent may make cgroups, or none", dir, err)
	}
	if err != nil {
		return &Groups{why: err.Error()}, nil
	}
	// Memory accounting and limits need the controller. systemd and containers often delegate it; without it, groups still contain the processes.
	os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory"), 0)
	return &Groups{dir: dir, lock: lock}, nil
}

// canStartInside returns an error if a process cannot be started in a cgroup, which needs clone3. Seccomp filters cannot inspect its arguments, so
// some deny it: RestrictNamespaces= of systemd, and container profiles.
func canStartInside() error {
	if _, _, errno := unix.Syscall(unix.SYS_CLONE3, 0, 0, 0); errno != unix.EINVAL { // the kernel's answer to arguments of size 0
		return fmt.Errorf("clone3: %w; a system call filter denies it, such as RestrictNamespaces= in the unit", errno)
	}
	return nil
}

// share removes the groups left by killed agents, unless another agent has groups in the directory, and returns a shared lock of the directory. A
// group of a running agent may also be empty: before its process has started, and until the peak memory of an ended process has been read.
func share(dir string) *os.File {
	lock, err := os.Open(dir)
	if err != nil {
		return nil
	}
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		empty, _ := filepath.Glob(filepath.Join(dir, "muster-*"))
		for _, group := range empty {
			os.Remove(group) // one with processes cannot be removed
		}
	}
	for range 500 { // others hold it only while they remove groups; any process of the host can take it, so do not wait forever
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return lock
}

// ownCgroup returns the directory of the agent's cgroup.
func ownCgroup() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	return parseCgroup(string(mounts), string(own))
}

func parseCgroup(mounts, own string) (string, error) {
	mount := ""
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if len(fields) >= 5 && strings.HasPrefix(after, "cgroup2 ") && fields[3] == "/" {
			mount = fields[4]
		}
	}
	if mount == "" {
		return "", errors.New("no cgroup2 file system is mounted")
	}
	for line := range strings.Lines(own) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			if filepath.Base(path) == "agent" {
				path = filepath.Dir(path)
			}
			return filepath.Join(mount, path), nil
		}
	}
	return "", errors.New("the agent is in no cgroup of version 2")
}

// Describe returns where the groups are, or why there are none.
func (g *Groups) Describe() string {
	if g.dir == "" {
		return "none: " + g.why
	}
	return g.dir
}

// enter creates the cgroup in which the process starts. The caller calls the returned function, which returns the group, after the start.
func (g *Groups) enter(attributes *syscall.SysProcAttr, c Command) (done func(error) string, err error) {
	if g.dir == "" {
		if c.Memory > 0 {
			return nil, fmt.Errorf("a memory limit needs cgroups of version 2: %s", g.why)
		}
		return func(error) string { return "" }, nil
	}
	group := filepath.Join(g.dir, groupName(c.ID))
	if err := os.Mkdir(group, 0o755); err != nil {
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	if c.Memory > 0 {
		if err := limit(group, c.Memory); err != nil {
			os.Remove(group)
			return nil, err
		}
	}
	dir, err := os.Open(group)
	if err != nil {
		os.Remove(group)
		return nil, err
	}
	attributes.UseCgroupFD, attributes.CgroupFD = true, int(dir.Fd())
	return func(err error) string {
		dir.Close()
		if err != nil {
			os.Remove(group)
			return ""
		}
		return group
	}, nil
}

func limit(group string, bytes int64) error {
	// Without swap, a process over its limit is killed instead of slowing down the others. The file does not exist without swap accounting.
	os.WriteFile(filepath.Join(group, "memory.swap.max"), []byte("0"), 0)
	os.WriteFile(filepath.Join(group, "memory.oom.group"), []byte("1"), 0)
	if err := os.WriteFile(filepath.Join(group, "memory.max"), strconv.AppendInt(nil, bytes, 10), 0); err != nil {
		return fmt.Errorf("limit the memory: %w; the cgroup's parent must have the memory controller in cgroup.subtree_control", err)
	}
	return nil
}

// groupName returns the name of a process's group. The ids come from the agent, and contain nothing that is not allowed in a path.
func groupName(id string) string { return "muster-" + filepath.Base(id) }

// Sweep ends all running descendants of a server process. It is called after the process has ended, or if it is not known whether the process was
// started. An empty group means that the process has none, or that its group is not known.
func (g *Groups) Sweep(id, group string) error {
	named := group != ""
	if !named && g.dir != "" {
		group = filepath.Join(g.dir, groupName(id))
	}
	if group != "" {
		err := os.WriteFile(filepath.Join(group, "cgroup.kill"), []byte("1"), 0)
		if err == nil || named && errors.Is(err, os.ErrNotExist) { // a group is removed once it is empty
			return nil
		}
	}
	return sweepMarked(id)
}

// peak returns the peak memory of a cgroup's processes, if the cgroup has the memory controller.
func (g *Groups) peak(group string) int64 {
	text, err := os.ReadFile(filepath.Join(group, "memory.peak"))
	if group == "" || err != nil {
		return 0
	}
	peak, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return peak
}

// remove removes the cgroup of an ended process, once the killed processes in it have ended.
func (g *Groups) remove(group string) {
	for wait := time.Millisecond; group != "" && wait < 20*time.Second; wait *= 2 {
		if err := removeTree(group); err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(wait)
	}
}

// removeTree removes the cgroup of an ended process with those that the process may have created in it. The kernel removes the files of a cgroup.
func removeTree(group string) error {
	err := os.Remove(group)
	if !errors.Is(err, unix.EBUSY) {
		return err
	}
	entries, _ := os.ReadDir(group) // if this fails, so does the last removal
	for _, entry := range entries {
		if entry.IsDir() {
			removeTree(filepath.Join(group, entry.Name()))
		}
	}
	return os.Remove(group)
}

// PIDs returns the process ids of a server process: all in its cgroup, or only its own without a cgroup.
func (r Record) PIDs() []int {
	if r.Group != "" {
		if text, err := os.ReadFile(filepath.Join(r.Group, "cgroup.procs")); err == nil {
			var pids []int
			for field := range strings.FieldsSeq(string(text)) {
				if pid, err := strconv.Atoi(field); err == nil {
					pids = append(pids, pid)
				}
			}
			return pids
		}
	}
	return []int{r.PID}
}
