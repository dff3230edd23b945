//go:build linux || darwin

package process

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// User is the user that a process runs as.
type User struct {
	name, home string
	credential syscall.Credential
}

// FindUser returns the user with a name or number. Only an agent that runs as root can start processes as another user.
func FindUser(name string) (*User, error) {
	u, err := user.Lookup(name)
	if err != nil {
		var byID error
		if u, byID = user.LookupId(name); byID != nil {
			return nil, err
		}
	}
	uid, errU := strconv.ParseUint(u.Uid, 10, 32)
	gid, errG := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(errU, errG); err != nil {
		return nil, err
	}
	found := &User{name: u.Username, home: u.HomeDir, credential: syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, err
	}
	for _, text := range groups {
		if id, err := strconv.ParseUint(text, 10, 32); err == nil {
			found.credential.Groups = append(found.credential.Groups, uint32(id))
		}
	}
	return found, nil
}

// Own gives a file or directory to the user. A nil user is the agent's own.
func (u *User) Own(path string) error {
	if u == nil {
		return nil
	}
	return os.Lchown(path, int(u.credential.Uid), int(u.credential.Gid))
}

// Environment returns the environment variables that identify the user.
func (u *User) Environment() []string {
	if u == nil {
		return nil
	}
	return []string{"USER=" + u.name, "LOGNAME=" + u.name, "HOME=" + u.home}
}

func (p *Process) start(command *exec.Cmd, c Command) error {
	attributes := &syscall.SysProcAttr{Setsid: true}
	if c.User != nil {
		attributes.Credential = &c.User.credential
	}
	command.SysProcAttr = attributes
	done, err := p.groups.enter(attributes, c)
	if err != nil {
		return err
	}
	err = command.Start()
	p.record.Group = done(err)
	if err != nil {
		return err
	}
	p.record.PID = command.Process.Pid
	p.record.Start, _ = startOf(p.record.PID) // a child keeps its process id until wait
	p.prepare()
	return nil
}

// wait waits for a child. It ends the child's descendants before the child's process id is free again, because that is also the id of the group.
func (p *Process) wait(command *exec.Cmd) {
	p.awaitEnd()
	p.Kill()
	p.mu.Lock()
	command.Wait() // returns at once; an error is in the state, too
	p.reaped = true
	p.mu.Unlock()
	state := command.ProcessState
	exit := exitOf(state.Sys().(syscall.WaitStatus))
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		exit.PeakMemory = usage.Maxrss * maxrssUnit
	}
	exit.PeakMemory = max(exit.PeakMemory, p.groups.peak(p.record.Group))
	p.finish(exit)
}

func exitOf(status syscall.WaitStatus) Exit {
	if status.Signaled() {
		return Exit{Known: true, Code: -1, Signal: unix.SignalName(status.Signal()), Core: status.CoreDump()}
	}
	return Exit{Known: true, Code: status.ExitStatus()}
}

func (p *Process) terminate() error { return signalGroup(p.record.PID, unix.SIGTERM) }

func (p *Process) kill() error { return signalGroup(p.record.PID, unix.SIGKILL) }

func (p *Process) abort() error { return signalGroup(p.record.PID, unix.SIGABRT) }

// signalGroup signals a process group by the system call. A program such as kill parses its arguments, and has been seen to take -1234 for -1.
func signalGroup(pid int, signal syscall.Signal) error {
	if pid <= 1 { // -1 would be every process of the host
		return errors.New("no process group")
	}
	err := unix.Kill(-pid, signal)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}
