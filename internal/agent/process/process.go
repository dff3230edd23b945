// Package process starts server processes so that they outlive the agent, watches them, and ends each of them together with all processes that it has
// started.
//
// On Linux a process gets its own session and, if the agent can create one, a cgroup (version 2), which none of its descendants can leave. Without a
// cgroup, the agent finds descendants that have left the session by their environment. On macOS, descendants that leave the session survive. On
// Windows, a job object contains the process and its descendants.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Mark is the environment variable with the id of a server process. Its descendants inherit it.
const Mark = "GAMELIFT_SDK_PROCESS_ID"

// Command describes what to start.
type Command struct {
	ID     string // of the server process in the service; it becomes Mark in the environment
	Path   string
	Args   []string // without the program's name
	Dir    string
	Env    []string
	Output *os.File
	User   *User // nil: the agent's
	Memory int64 // limit in bytes, if groups can limit memory; 0: no limit
}

// Record is what a later agent needs to find a process again.
type Record struct {
	PID int `json:"pid"`
	// Start is when the process started, in a system-dependent form. It distinguishes the process from a later one with the same process id.
	Start string `json:"start"`
	Group string `json:"group,omitzero"` // of a cgroup or job object
}

// Exit describes how a process ended.
type Exit struct {
	Known  bool // false: it was adopted, and the system no longer had its status
	Code   int  // -1 after a signal
	Signal string
	Core   bool // it left a core dump
	// PeakMemory is the maximum memory that it used in bytes; 0: unknown.
	PeakMemory int64
	At         time.Time
}

// Crashed reports whether the process ended abnormally or in an unknown way.
func (e Exit) Crashed() bool { return !e.Known || e.Code != 0 }

// Text describes the exit: exit code 3, signal SIGSEGV.
func (e Exit) Text() string {
	switch {
	case !e.Known:
		return "exit status unknown"
	case e.Signal != "":
		return "signal " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// ErrGone means that a process to adopt is no longer running.
var ErrGone = errors.New("the process is no longer running")

// Process is a running or ended process with its descendants.
type Process struct {
	id     string
	record Record
	groups *Groups
	system system

	done chan struct{}
	mu   sync.Mutex
	exit Exit
	// reaped means that the process id may belong to another process by now, so that no signal may be sent to it.
	reaped bool
}

// Start starts a process. The error is an *exec.Error or *os.PathError if there is no such program, or it cannot be executed.
func (g *Groups) Start(c Command) (*Process, error) {
	command := exec.Command(c.Path, c.Args...)
	if command.Err != nil {
		return nil, command.Err
	}
	command.Dir, command.Env = c.Dir, append(c.Env[:len(c.Env):len(c.Env)], Mark+"="+c.ID)
	command.Stdout, command.Stderr = c.Output, c.Output
	p := &Process{id: c.ID, groups: g, done: make(chan struct{})}
	if err := p.start(command, c); err != nil {
		return nil, err
	}
	go func() {
		p.wait(command)
		close(p.done)
		g.remove(p.record.Group)
	}()
	return p, nil
}

// Adopt watches a process that an earlier agent started. If the process is no longer running, Adopt ends its remaining descendants and returns
// ErrGone.
func (g *Groups) Adopt(id string, record Record) (*Process, error) {
	p := &Process{id: id, record: record, groups: g, done: make(chan struct{})}
	if err := p.adopt(); err != nil {
		g.Sweep(id, record.Group)
		return nil, err
	}
	go func() {
		p.watch()
		close(p.done)
		g.remove(record.Group)
	}()
	return p, nil
}

// Record returns what a later agent needs to adopt the process.
func (p *Process) Record() Record { return p.record }

// Done returns a channel that is closed when the process and its descendants have ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit returns how the process ended; call it after Done.
func (p *Process) Exit() Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

// Terminate asks the process and its descendants to end: SIGTERM to the process group.
func (p *Process) Terminate() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	return p.terminate()
}

// Kill ends the process and all its descendants.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	return errors.Join(p.kill(), p.groups.Sweep(p.id, p.record.Group))
}

// Abort ends the process in such a way that it leaves a core dump, if the system writes them.
func (p *Process) Abort() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	return p.abort()
}

// finish records how the process ended.
func (p *Process) finish(exit Exit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	exit.At = time.Now()
	p.exit, p.reaped = exit, true
}
