package process

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

const maxrssUnit = 1

type system struct{}

func (p *Process) prepare() {}

// awaitEnd waits until the process has ended, child or not; a child is not reaped.
func (p *Process) awaitEnd() {
	queue, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer unix.Close(queue)
	change := unix.Kevent_t{Ident: uint64(p.record.PID), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT}
	for {
		var event [1]unix.Kevent_t
		if _, err := unix.Kevent(queue, []unix.Kevent_t{change}, event[:], nil); !errors.Is(err, unix.EINTR) {
			return // also with ESRCH: it has ended already
		}
	}
}

// Groups is empty on macOS: a session holds its processes together, and a descendant that leaves the session survives.
type Groups struct{}

// NewGroups returns the groups; only "" and "none" are possible.
func NewGroups(dir string) (*Groups, error) {
	if dir != "" && dir != "none" {
		return nil, fmt.Errorf("cgroup %s: macOS has no cgroups", dir)
	}
	return &Groups{}, nil
}

// Describe returns why there are no groups.
func (g *Groups) Describe() string { return "none: macOS has no cgroups" }

func (g *Groups) enter(_ *syscall.SysProcAttr, c Command) (func(error) string, error) {
	if c.Memory > 0 {
		return nil, errors.New("a memory limit needs cgroups, which macOS does not have")
	}
	return func(error) string { return "" }, nil
}

// Sweep does nothing on macOS.
func (g *Groups) Sweep(string, string) error { return nil }

func (g *Groups) peak(string) int64 { return 0 }

func (g *Groups) remove(string) {}

func (p *Process) adopt() error {
	if start, err := startOf(p.record.PID); err != nil || start != p.record.Start {
		return ErrGone
	}
	return nil
}

func (p *Process) watch() {
	p.awaitEnd()
	p.finish(Exit{})
}

func startOf(pid int) (string, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d.%06d", info.Proc.P_starttime.Sec, info.Proc.P_starttime.Usec), nil
}

// BootID returns an id that changes when the host restarts.
func BootID() string {
	boot, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return ""
	}
	return fmt.Sprint(boot.Sec)
}

// PIDs returns only the process itself, because macOS does not report its descendants.
func (r Record) PIDs() []int { return []int{r.PID} }
