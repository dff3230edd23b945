package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/musterhq/muster/internal/agent/agenttest"
	"github.com/musterhq/muster/internal/waittest"
)

func alive(pid int) bool { return unix.Kill(pid, 0) == nil && !zombie(pid) }

func TestSignals(t *testing.T) {
	worlds(t, func(w world) {
		if exit := w.ends(w.start("crash")); exit.Signal != "SIGKILL" || exit.Code != -1 || !exit.Crashed() {
			w.Errorf("%+v", exit)
		}
		p := w.start("stubborn")
		w.wants("ready")
		waittest.Until(w, "SIGTERM is ignored", func() bool { return ignored(p.record.PID) })
		if err := p.Terminate(); err != nil {
			w.Fatal(err)
		}
		select {
		case <-p.Done():
			w.Fatalf("it ended: %+v", p.Exit())
		case <-time.After(50 * time.Millisecond):
		}
		if err := p.Kill(); err != nil {
			w.Fatal(err)
		}
		if exit := w.ends(p); exit.Signal != "SIGKILL" {
			w.Errorf("%+v", exit)
		}
	})
}

// ignored returns whether a process ignores SIGTERM.
func ignored(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := bytes.Cut(text, []byte("SigIgn:"))
	var mask uint64
	fmt.Sscanf(string(after), "%x", &mask)
	return mask&(1<<(unix.SIGTERM-1)) != 0
}

// TestWhatLeavesTheGroupEnds: a process starts another one in a new session. The second ends with the first, whether that is killed or exits.
func TestWhatLeavesTheGroupEnds(t *testing.T) {
	worlds(t, func(w world) {
		for _, play := range []string{"leave", "leave-and-exit"} {
			file := filepath.Join(w.TempDir(), "pid")
			p := w.start(play, file)
			waittest.Until(w, "it starts another", func() bool { _, err := os.Stat(file); return err == nil })
			text, err := os.ReadFile(file)
			if err != nil {
				w.Fatal(err)
			}
			other, err := strconv.Atoi(string(text))
			if err != nil {
				w.Fatal(err)
			}
			if play == "leave" {
				if !alive(other) {
					w.Fatal("the other process does not run")
				}
				p.Kill()
			}
			w.ends(p)
			waittest.Until(w, play+": the other process ends", func() bool { return !alive(other) })
			if group := p.Record().Group; group != "" {
				waittest.Until(w, "the cgroup is removed", func() bool { _, err := os.Stat(group); return errors.Is(err, os.ErrNotExist) })
			}
		}
	})
}

// TestAgentGetsCgroups adopts a process whose agent could not create cgroups, which this one can: what has left the process's session ends with it.
func TestAgentGetsCgroups(t *testing.T) {
	without, err := NewGroups("none")
	if err != nil {
		t.Fatal(err)
	}
	w := world{t, without, filepath.Join(t.TempDir(), "output")}
	file := filepath.Join(t.TempDir(), "pid")
	p := w.start("leave", file)
	var other int
	waittest.Until(w, "it starts another", func() bool {
		text, _ := os.ReadFile(file)
		other, err = strconv.Atoi(string(text))
		return err == nil
	})
	with := &Groups{dir: t.TempDir()}
	if err := with.Sweep(p.id, p.Record().Group); err != nil {
		t.Fatal(err)
	}
	waittest.Until(w, "the other process ends", func() bool { return !alive(other) })
}

// TestAdopt kills the agent that started a process, and adopts the process. On recent kernels its exit status is still known.
func TestAdopt(t *testing.T) {
	worlds(t, func(w world) {
		for _, end := range []string{"terminate", "kill"} {
			record := orphan(w)
			p, err := w.groups.Adopt("orphan-"+end, record)
			if err != nil {
				w.Fatal(err)
			}
			if got := p.Record(); got != record {
				w.Errorf("record %+v, want %+v", got, record)
			}
			select {
			case <-p.Done():
				w.Fatal("it ended with its agent")
			default:
			}
			if end == "kill" {
				err = p.Kill()
			} else {
				err = p.Terminate()
			}
			if err != nil {
				w.Fatal(err)
			}
			switch exit := w.ends(p); {
			case !exit.Known:
				w.Log("this kernel does not keep the status of an orphan")
			case end == "kill" && exit.Signal != "SIGKILL", end == "terminate" && exit.Code != 0:
				w.Errorf("%s: %+v", end, exit)
			}
			if alive(record.PID) {
				w.Error("it still runs")
			}
		}
	})
}

// orphan starts a process through another agent, which is then killed.
func orphan(w world) Record {
	self, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	agent := exec.Command(self, "-test.run", "^TestAgentToKill$")
	agent.Env = append(os.Environ(), "AGENT_TO_KILL="+w.output, "GROUPS="+w.groups.dir)
	agent.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if err := agent.Start(); err != nil {
		w.Fatal(err)
	}
	var record Record
	waittest.Until(w, "the other agent starts a process", func() bool {
		text, _ := os.ReadFile(w.output + ".record")
		return json.Unmarshal(text, &record) == nil
	})
	w.wants("ready")
	agent.Process.Kill()
	agent.Wait()
	os.Remove(w.output + ".record")
	return record
}

// TestAgentToKill runs the other agent.
func TestAgentToKill(t *testing.T) {
	output := os.Getenv("AGENT_TO_KILL")
	if output == "" {
		t.Skip("only as a part of TestAdopt")
	}
	dir := os.Getenv("GROUPS")
	if dir == "" {
		dir = "none"
	}
	groups, err := NewGroups(dir)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(output)
	if err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	p, err := groups.Start(Command{ID: strconv.Itoa(os.Getpid()), Path: self, Args: agenttest.Args("wait"), Output: out})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(p.Record())
	if err := os.WriteFile(output+".record", text, 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(agenttest.Patience)
}

func TestPeakMemory(t *testing.T) {
	worlds(t, func(w world) {
		p := w.start("eat", strconv.Itoa(64<<20))
		w.wants("ate")
		p.Kill()
		if exit := w.ends(p); exit.PeakMemory < 64<<20 {
			w.Errorf("peak %d, want at least 64 MiB", exit.PeakMemory)
		}
	})
}

// TestGroupIDs: group ids with which a signal would reach other processes are refused.
func TestGroupIDs(t *testing.T) {
	for _, pid := range []int{-1, 0, 1} {
		if err := signalGroup(pid, 0); err == nil {
			t.Errorf("group %d: want an error", pid)
		}
	}
	if err := signalGroup(1<<30, unix.SIGTERM); err != nil {
		t.Errorf("a group that does not exist: %v, want none", err)
	}
}

// TestGroupWithFirstDigitOne ends a group whose id begins with 1, which a version of the program kill is known to interpret as "every process".
func TestGroupWithFirstDigitOne(t *testing.T) {
	worlds(t, func(w world) {
		bystander := w.start("stubborn")
		for range 400 {
			p := w.start("stubborn")
			first := strconv.Itoa(p.record.PID)[0] == '1'
			if err := p.Kill(); err != nil {
				w.Fatal(err)
			}
			w.ends(p)
			if !alive(bystander.record.PID) {
				w.Fatalf("the end of group %d ended process %d", p.record.PID, bystander.record.PID)
			}
			if first {
				return
			}
			if !setNextPID(10_000 + p.record.PID%1000) {
				w.Skip("this test cannot choose numbers of processes")
			}
		}
	})
}

// setNextPID makes the kernel number the next process after pid. Only root may do so.
func setNextPID(pid int) bool {
	return os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid)), 0) == nil
}

func TestParseCgroup(t *testing.T) {
	const mounts = "25 30 0:23 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n26 30 0:24 / /proc rw - proc proc rw\n"
	for own, want := range map[string]string{
		"0::/system.slice/muster-agent.service\n":       "/sys/fs/cgroup/system.slice/muster-agent.service",
		"0::/system.slice/muster-agent.service/agent\n": "/sys/fs/cgroup/system.slice/muster-agent.service",
		"1:name=systemd:/\n0::/\n":                      "/sys/fs/cgroup",
	} {
		if got, err := parseCgroup(mounts, own); got != want || err != nil {
			t.Errorf("%q: got %q, %v", own, got, err)
		}
	}
	if got, err := parseCgroup("", "0::/\n"); err == nil {
		t.Errorf("no mount: got %q", got)
	}
	if _, err := NewGroups(t.TempDir()); err == nil {
		t.Error("a directory that is none of cgroups: want an error")
	}
}

// TestGroupOfAnotherAgentStays: an agent that starts beside another one leaves the other's groups alone, even a group whose process is only about to start.
// Once the other agent is gone, it removes the groups that are left.
func TestGroupOfAnotherAgentStays(t *testing.T) {
	one, err := NewGroups("")
	if err != nil {
		t.Fatal(err)
	}
	if one.dir == "" {
		t.Skip("this host has no cgroups: ", one.Describe())
	}
	parent := filepath.Join(one.dir, fmt.Sprintf("test-of-muster-%d", os.Getpid()))
	if err := os.Mkdir(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(parent) })
	if one, err = NewGroups(parent); err != nil {
		t.Fatal(err)
	}
	var attributes syscall.SysProcAttr
	if _, err := one.enter(&attributes, Command{ID: "starting"}); err != nil {
		t.Fatal(err)
	}
	group := filepath.Join(parent, groupName("starting"))
	t.Cleanup(func() { os.Remove(group) })
	beside, err := NewGroups(parent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(group); err != nil {
		t.Errorf("the group of the other agent: %v", err)
	}
	one.lock.Close()
	beside.lock.Close()
	if _, err := NewGroups(parent); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(group); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the group of an agent that is gone: got %v, want none", err)
	}
}

// TestNoClone3: where a filter denies clone3, as RestrictNamespaces= of systemd and profiles of containers do, no process can start in a cgroup, so it starts without one.
func TestNoClone3(t *testing.T) {
	before, err := NewGroups("")
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // for ever: the thread ends with this goroutine, and the filter with it
	if err := denyClone3(); err != nil {
		t.Fatal(err)
	}
	groups, err := NewGroups("")
	if err != nil {
		t.Fatal(err)
	}
	w := world{t, groups, filepath.Join(t.TempDir(), "output")}
	if exit := w.ends(w.start("exit", "3")); exit.Code != 3 {
		t.Errorf("%+v", exit)
	}
	if before.dir == "" {
		t.Skip("this host has no cgroups: ", before.Describe())
	}
	if !strings.Contains(groups.Describe(), "clone3") {
		t.Errorf("groups: %s", groups.Describe())
	}
	if _, err := NewGroups(before.dir); err == nil || !strings.Contains(err.Error(), "RestrictNamespaces") {
		t.Errorf("with a directory that was named: %v", err)
	}
}

// denyClone3 makes the kernel answer clone3 of this thread with ENOSYS.
func denyClone3() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE3, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

// A server process with the right to do so may create cgroups in its own, as a container runtime does. They go with it.
func TestGroupsOfTheProcessAreRemoved(t *testing.T) {
	groups, err := NewGroups("")
	if err != nil {
		t.Fatal(err)
	}
	if groups.dir == "" {
		t.Skip("this host has no cgroups: ", groups.Describe())
	}
	group := filepath.Join(groups.dir, groupName("nested"))
	for _, dir := range []string{group, filepath.Join(group, "a"), filepath.Join(group, "a", "b"), filepath.Join(group, "c")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(dir)
	}
	groups.remove(group)
	if _, err := os.Stat(group); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the group: got %v, want none", err)
	}
}
