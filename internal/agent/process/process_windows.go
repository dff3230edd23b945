package process

import (
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// system has the handles of a process and of its job object. Both stay valid after its end, and keep its process id from being reused.
type system struct {
	process windows.Handle
	job     windows.Handle
}

// Groups makes a job object for each process.
type Groups struct{}

// NewGroups returns the groups; only "" and "none" are possible.
func NewGroups(dir string) (*Groups, error) {
	if dir != "" && dir != "none" {
		return nil, fmt.Errorf("cgroup %s: Windows has no cgroups", dir)
	}
	return &Groups{}, nil
}

// Describe returns what holds processes together.
func (g *Groups) Describe() string { return "job objects" }

// User cannot be chosen on Windows.
type User struct{}

// FindUser fails on Windows.
func FindUser(string) (*User, error) {
	return nil, errors.New("server processes cannot run as another user on Windows; run the agent's service as that user")
}

// Own does nothing on Windows.
func (u *User) Own(string) error { return nil }

// Environment has nothing on Windows.
func (u *User) Environment() []string { return nil }

const access = windows.SYNCHRONIZE | windows.PROCESS_QUERY_LIMITED_INFORMATION | windows.PROCESS_TERMINATE | windows.PROCESS_SET_QUOTA

// start starts the process suspended, so that it cannot start others before it is in its job.
func (p *Process) start(command *exec.Cmd, c Command) error {
	job, err := openJob(c.ID)
	if err != nil {
		return err
	}
	if c.Memory > 0 {
		limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{JobMemoryLimit: uintptr(c.Memory)}
		limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_JOB_MEMORY
		if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
			windows.CloseHandle(job)
			return fmt.Errorf("limit the memory: %w", err)
		}
	}
	// The process inherits a handle of its job: Windows forgets the name of a job with its last handle, and the next agent opens the job by its name.
	if err := windows.SetHandleInformation(job, windows.HANDLE_FLAG_INHERIT, windows.HANDLE_FLAG_INHERIT); err != nil {
		windows.CloseHandle(job)
		return fmt.Errorf("let the process inherit its job: %w", err)
	}
	command.SysProcAttr = &syscall.SysProcAttr{
		CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP, AdditionalInheritedHandles: []syscall.Handle{syscall.Handle(job)},
	}
	if err := command.Start(); err != nil {
		windows.CloseHandle(job)
		return err
	}
	pid := command.Process.Pid
	handle, err := windows.OpenProcess(access, false, uint32(pid))
	if err == nil {
		if err = windows.AssignProcessToJobObject(job, handle); err == nil {
			err = resume(uint32(pid))
		}
	}
	if err != nil {
		command.Process.Kill()
		command.Wait()
		windows.CloseHandle(job)
		return fmt.Errorf("put process %d into its job: %w", pid, err)
	}
	p.system = system{process: handle, job: job}
	p.record = Record{PID: pid, Group: jobName(c.ID)}
	p.record.Start, err = startOf(handle)
	return err
}

func jobName(id string) string { return `Local\muster-` + id }

// openJob creates a job object, or opens the existing one with that name.
func openJob(id string) (windows.Handle, error) {
	name, err := windows.UTF16PtrFromString(jobName(id))
	if err != nil {
		return 0, err
	}
	job, err := windows.CreateJobObject(nil, name)
	if job != 0 && errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
		err = nil
	}
	if err != nil {
		return 0, fmt.Errorf("make job object: %w", err)
	}
	return job, nil
}

// resume starts the only thread of a suspended process.
func resume(pid uint32) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(snapshot)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snapshot, &entry); err == nil; err = windows.Thread32Next(snapshot, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return err
		}
		defer windows.CloseHandle(thread)
		_, err = windows.ResumeThread(thread)
		return err
	}
	return err
}

func (p *Process) wait(command *exec.Cmd) {
	p.watch()
	command.Wait()
}

func (p *Process) adopt() error {
	handle, err := windows.OpenProcess(access, false, uint32(p.record.PID))
	if err != nil {
		return ErrGone
	}
	p.system.process = handle
	start, err := startOf(handle)
	if event, _ := windows.WaitForSingleObject(handle, 0); err != nil || start != p.record.Start || event == windows.WAIT_OBJECT_0 {
		windows.CloseHandle(handle)
		return ErrGone
	}
	p.system.job, err = openJob(p.id)
	return err
}

// watch waits for the end of the process, child or not: the handle has its status.
func (p *Process) watch() {
	windows.WaitForSingleObject(p.system.process, windows.INFINITE)
	exit := Exit{}
	var code uint32
	if windows.GetExitCodeProcess(p.system.process, &code) == nil {
		exit.Known, exit.Code = true, int(int32(code))
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	if windows.QueryInformationJobObject(p.system.job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)), nil) == nil {
		exit.PeakMemory = int64(limits.PeakJobMemoryUsed)
	}
	p.Kill()
	p.finish(exit)
	windows.CloseHandle(p.system.job)
	windows.CloseHandle(p.system.process)
}

// consoles is held while the agent is attached to the console of a process. An agent has at most one.
var consoles sync.Mutex

// terminate sends Ctrl-Break, which a console program can handle; others do not notice it, and Kill ends them. It reaches the processes of the agent's own
// console. An agent without one, such as a service, attaches to that of the process.
func (p *Process) terminate() error {
	consoles.Lock()
	defer consoles.Unlock()
	pid := uint32(p.record.PID)
	if err := windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, pid); err == nil {
		return nil
	}
	if ok, _, err := attachConsole.Call(uintptr(pid)); ok == 0 {
		return fmt.Errorf("attach to the console of process %d: %w", pid, err)
	}
	defer freeConsole.Call()
	return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, pid)
}

var (
	kernel        = windows.NewLazySystemDLL("kernel32.dll")
	attachConsole = kernel.NewProc("AttachConsole")
	freeConsole   = kernel.NewProc("FreeConsole")
)

func (p *Process) kill() error { return windows.TerminateJobObject(p.system.job, 1) }

func (p *Process) abort() error { return p.kill() }

// Sweep ends the remaining processes in the job of a server process.
func (g *Groups) Sweep(id, _ string) error {
	job, err := openJob(id)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(job)
	return windows.TerminateJobObject(job, 1)
}

func (g *Groups) remove(string) {}

func startOf(process windows.Handle) (string, error) {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(process, &created, &exited, &kernel, &user); err != nil {
		return "", err
	}
	return fmt.Sprint(created.Nanoseconds()), nil
}

// BootID returns "" on Windows, because the start time of a process distinguishes boots.
func BootID() string { return "" }

// PIDs returns only the process itself.
func (r Record) PIDs() []int { return []int{r.PID} }
