package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxrssUnit is the unit of Rusage.Maxrss in bytes.
const maxrssUnit = 1024

// system is the state of a process on Linux.
type system struct {
	pidfd *os.File // nil before Linux 5.10
}

// prepare opens the pidfd with which the process is watched.
func (p *Process) prepare() {
	if fd, err := unix.PidfdOpen(p.record.PID, unix.PIDFD_NONBLOCK); err == nil {
		p.system.pidfd = os.NewFile(uintptr(fd), "pidfd")
	}
}

// awaitEnd waits until the process, a child, has ended. It does not reap it.
func (p *Process) awaitEnd() {
	if p.system.pidfd != nil {
		defer p.system.pidfd.Close()
		if p.awaitDescriptor() == nil {
			return
		}
	}
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.record.PID, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// awaitDescriptor waits without a thread: Go's poller watches the descriptor.
func (p *Process) awaitDescriptor() error {
	raw, err := p.system.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(fd uintptr) bool {
		set := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(set, 0)
		return err == nil && n > 0
	})
}

func (p *Process) adopt() error {
	p.prepare() // before the start time is checked, so that the descriptor belongs to the process that is checked
	start, err := startOf(p.record.PID)
	if err != nil || start != p.record.Start || zombie(p.record.PID) {
		if p.system.pidfd != nil {
			p.system.pidfd.Close()
		}
		return ErrGone
	}
	return nil
}

// watch waits for the end of an adopted process, which is not a child.
func (p *Process) watch() {
	exit := Exit{}
	if p.system.pidfd == nil || p.awaitDescriptor() != nil {
		p.poll()
	} else {
		exit = p.exitInfo()
	}
	// The process id is or will soon be free, so it must not be used to signal the group.
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	p.groups.Sweep(p.id, p.record.Group)
	exit.PeakMemory = p.groups.peak(p.record.Group)
	p.finish(exit)
	if p.system.pidfd != nil {
		p.system.pidfd.Close()
	}
}

// poll waits until the process is gone, on kernels without pidfd.
func (p *Process) poll() {
	for {
		if start, err := startOf(p.record.PID); err != nil || start != p.record.Start || zombie(p.record.PID) {
			return
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// exitInfo asks for the status of a process that ended. Until its parent has reaped the process, the status is in its entry of /proc; from then on
// Linux 6.15 and later keep it with the descriptor.
func (p *Process) exitInfo() Exit {
	for range 50 {
		if status, ok := zombieStatus(p.record.PID); ok {
			return exitOf(status)
		}
		info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
		if err := p.pidfdInfo(&info); err != nil && !errors.Is(err, unix.ESRCH) {
			return Exit{}
		} else if err == nil && info.Mask&unix.PIDFD_INFO_EXIT != 0 {
			return exitOf(syscall.WaitStatus(info.Exit_code))
		}
		time.Sleep(2 * time.Millisecond)
	}
	return Exit{}
}

// zombieStatus returns the status of a process that has ended and has not been reaped. The process id belongs to it as long as it is a zombie.
func zombieStatus(pid int) (syscall.WaitStatus, bool) {
	var owner unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d", pid), &owner); err != nil || int(owner.Uid) != os.Geteuid() {
		return 0, false // the kernel may write 0 instead of the status of other users' processes
	}
	fields, err := stat(pid)
	if err != nil || fields[0] != "Z" || len(fields) < 50 {
		return 0, false
	}
	status, err := strconv.Atoi(fields[49]) // exit_code, field 52
	return syscall.WaitStatus(status), err == nil
}

func (p *Process) pidfdInfo(info *unix.PidfdInfo) error {
	raw, err := p.system.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.IoctlPidfdInfo(int(fd), info) }); err != nil {
		return err
	}
	return failed
}

// startOf returns the boot and the clock tick in which a process started.
func startOf(pid int) (string, error) {
	fields, err := stat(pid)
	if err != nil {
		return "", err
	}
	return BootID() + "/" + fields[19], nil // starttime, field 22 of stat
}

func zombie(pid int) bool {
	fields, err := stat(pid)
	return err != nil || fields[0] == "Z" || fields[0] == "X"
}

// stat returns the fields of /proc/PID/stat after the name, which may contain any characters.
func stat(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return nil, fmt.Errorf("/proc/%d/stat: %d fields", pid, len(fields))
	}
	return fields, nil
}

// BootID returns an id that changes when the host restarts.
func BootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

// sweepMarked ends all processes that have inherited the id of a server process. It signals them through pidfds, so that it does not hit a process
// that gets a freed process id meanwhile.
func sweepMarked(id string) error {
	mark := []byte(Mark + "=" + id)
	var last error
	for range 10 { // a process may have forked while the list was read
		found := false
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return err
		}
		for _, entry := range entries {
			pid, err := strconv.Atoi(entry.Name())
			if err != nil || pid == os.Getpid() || !marked(pid, mark) {
				continue
			}
			if err := killMarked(pid, mark); err != nil {
				last = err
				continue
			}
			found = true
		}
		if !found {
			return last
		}
		time.Sleep(5 * time.Millisecond)
	}
	return last
}

// killMarked ends a process if it is still the one with the mark.
func killMarked(pid int, mark []byte) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil { // before Linux 5.3
		return unix.Kill(pid, unix.SIGKILL)
	}
	defer unix.Close(fd)
	if !marked(pid, mark) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

func marked(pid int, mark []byte) bool {
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // empty for a zombie
	if err != nil {
		return false
	}
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		if bytes.Equal(variable, mark) {
			return true
		}
	}
	return false
}
