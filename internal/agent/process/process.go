// Package process starts server processes so that they outlive the agent, watches them, and ends each of them with all that it has started.
//
// On Linux a process gets a session of its own and, where the agent may make one, a cgroup (version 2), which nothing that it starts can leave. Without a cgroup
// the agent finds what left the session by its environment. On macOS what leaves the session survives. On Windows a job object holds the process and
// what it starts.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Mark is the environment variable that holds the id of a server process. What the process starts inherits it.
const Mark = "GAMELIFT_SDK_PROCESS_ID"

// Command says what to start.
type Command struct {
	ID     string // of the server process in the service; it becomes Mark in the environment
	Path   string
	Args   []string // without the name of the program
	Dir    string
	Env    []string
	Output *os.File
	User   *User // nil: the agent's
	Memory int64 // most bytes, where groups have a limit; 0: no limit
}

// Record is what a later agent needs to find a process again.
type Record struct {
	PID int `json:"pid"`
	// Start tells the process from another one that got its number later: the moment of its start, in a form that depends on the system.
	Start string `json:"start"`
	Group string `json:"group,omitzero"` // of a cgroup or job object
}

// Exit is how a process ended.
type Exit struct {
	Known  bool // false: it was adopted, and the system no longer had its status
	Code   int  // -1 after a signal
	Signal string
	Core   bool // it left a core dump
	// PeakMemory is the most bytes that it had, as far as the system says; 0: unknown.
	PeakMemory int64
	At         time.Time
}

// Crashed returns whether the process ended by itself in a way that is no normal end.
func (e Exit) Crashed() bool { return !e.Known || e.Code != 0 }

// Text says it in words: exit code 3, signal SIGSEGV.
func (e Exit) Text() string {
	switch {
	case !e.Known:
		return "exit status unknown"
	case e.Signal != "":
		return "signal " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// ErrGone says that a process to adopt does not run any more.
var ErrGone = errors.New("the process does not run any more")

// Process is a running or ended process with all that it started.
type Process struct {
	id     string
	record Record
	groups *Groups
	system system

	done chan struct{}
	mu   sync.Mutex
	exit Exit
	// reaped says that the number of the process may belong to another one, so that no signal may go to it.
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

// Adopt watches a process that an agent before this one started. It returns ErrGone if the process does not run; what it started and left behind is
// ended then.
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

// Done is closed when the process has ended, and what it started with it.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit returns how the process ended; call it after Done.
func (p *Process) Exit() Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

// Terminate asks the process and what it started to end: SIGTERM to the group.
func (p *Process) Terminate() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	return p.terminate()
}

// Kill ends the process and everything that it started.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	return errors.Join(p.kill(), p.groups.Sweep(p.id, p.record.Group))
}

// Abort ends the process so that it leaves a core dump, where the system makes them.
func (p *Process) Abort() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	return p.abort()
}

// finish records the end.
func (p *Process) finish(exit Exit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	exit.At = time.Now()
	p.exit, p.reaped = exit, true
}
