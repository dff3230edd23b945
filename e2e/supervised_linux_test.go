package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/waittest"
)

// systemd is a fake service manager: it receives the program's notifications.
type systemd struct {
	t    *testing.T
	conn *net.UnixConn
	env  []string
	last string // the last notification, in full
}

func newSystemd(t *testing.T) *systemd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return &systemd{t: t, conn: conn, env: []string{"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=800000"}} // a call every 0.2 s
}

// next waits for the next notification.
func (s *systemd) next() string {
	s.t.Helper()
	buffer := make([]byte, 4096)
	_ = s.conn.SetReadDeadline(time.Now().Add(patience))
	n, err := s.conn.Read(buffer)
	if err != nil {
		s.t.Fatalf("%v; the last notification was %q", err, s.last)
	}
	s.last = string(buffer[:n])
	return s.last
}

// until waits for a notification that has all of these parts.
func (s *systemd) until(parts ...string) string {
	s.t.Helper()
	for end := time.Now().Add(patience); ; {
		told, missing := s.next(), false
		for _, part := range parts {
			missing = missing || !strings.Contains(told, part)
		}
		if !missing {
			return told
		}
		if time.Now().After(end) { // the watchdog is fed all the time
			s.t.Fatalf("no notification has %q; the last one was %q", parts, told)
		}
	}
}

// TestSupervised: systemd is told when the service is ready, works and stops. With a full disk the watchdog is still fed, because a new process would find the same disk.
func TestSupervised(t *testing.T) {
	t.Parallel()
	manager := newSystemd(t)
	s := newService(t)
	smallDisk(t, s.data, 256<<20)
	t.Cleanup(s.kill) // before the disk goes
	s.env = manager.env
	s.launch()
	if told := manager.next(); !strings.HasPrefix(told, "READY=1\n") {
		t.Errorf("the first notification is %q, want that the service is ready", told)
	}
	if !s.healthy() {
		t.Error("the service is ready for systemd, and not healthy")
	}
	manager.until("WATCHDOG=1", "STATUS=serves at ")
	ballast := fillDisk(t, s.data)
	manager.until("WATCHDOG=1", "STATUS=refuses changes: ", "no space")
	for range 8 { // twice the time after which systemd would end it
		if told := manager.next(); told != "WATCHDOG=1" && !strings.HasPrefix(told, "WATCHDOG=1\nSTATUS=refuses changes") {
			t.Errorf("with a full disk: %q", told)
		}
	}
	must(t, os.Remove(ballast))
	manager.until("WATCHDOG=1", "STATUS=serves at ")
	must(t, s.cmd.Process.Signal(syscall.SIGTERM))
	manager.until("STOPPING=1")
	<-s.exited
}

// TestWatchdogOfAFailedStore: after a disk error that is not a shortage, the watchdog is no longer fed, so that systemd restarts the service.
func TestWatchdogOfAFailedStore(t *testing.T) {
	t.Parallel()
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		cannotRun(t, "no prlimit here")
	}
	manager := newSystemd(t)
	s := newService(t)
	s.env = manager.env
	s.start()
	manager.until("WATCHDOG=1", "STATUS=serves at ")
	out, err := exec.Command(prlimit, "--pid", strconv.Itoa(s.cmd.Process.Pid), "--fsize=1").CombinedOutput()
	if err != nil {
		t.Fatalf("prlimit: %v %s", err, out)
	}
	for i := 0; err == nil; i++ {
		_, err = s.client.CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: aws.String("custom-" + strconv.Itoa(i))})
	}
	manager.until("STATUS=does not work: ", "file too large")
	for range 8 {
		if told := manager.next(); strings.Contains(told, "WATCHDOG=1") {
			t.Errorf("fed after the failure: %q", told)
		}
	}
	s.untilLogged("stops feeding systemd's watchdog")
}

// TestWatchdogOfAStoppedProcess: a stopped process does not feed the watchdog.
func TestWatchdogOfAStoppedProcess(t *testing.T) {
	t.Parallel()
	manager := newSystemd(t)
	s := newService(t)
	s.env = manager.env
	s.start()
	manager.until("WATCHDOG=1")
	must(t, s.cmd.Process.Signal(syscall.SIGSTOP))
	waittest.Until(t, "the process to stand still", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/stat")
		must(t, err)
		return strings.Contains(string(stat), ") T ")
	})
	silent := false
	for !silent {
		_ = manager.conn.SetReadDeadline(time.Now().Add(time.Second))
		_, err := manager.conn.Read(make([]byte, 4096))
		silent = err != nil
	}
	must(t, s.cmd.Process.Signal(syscall.SIGCONT))
	manager.until("WATCHDOG=1")
}

// TestSupervisedAgent: the agent notifies systemd in the same way, also without a service.
func TestSupervisedAgent(t *testing.T) {
	t.Parallel()
	manager, dir := newSystemd(t), t.TempDir()
	config := filepath.Join(dir, "runtime.json")
	must(t, os.WriteFile(config, []byte(`{"ServerProcesses": []}`), 0o600))
	cmd := exec.Command(musterBinary, "agent", "--runtime-config", config, "--root", dir, "--state-dir", filepath.Join(dir, "state"))
	cmd.Env = cleanEnvironment(manager.env...)
	logs := newOutput()
	cmd.Stdout, cmd.Stderr = logs, logs
	must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if told := manager.next(); !strings.HasPrefix(told, "READY=1\n") {
		t.Errorf("the first notification is %q, want that the agent is ready\n%s", told, logs.tail(10))
	}
	manager.until("WATCHDOG=1", "STATUS=not connected; 0 server processes")
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	manager.until("STOPPING=1")
}
