package e2e

import (
	"bufio"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/musterhq/muster/internal/waittest"
)

// withPipe starts the service with a log that leads into a pipe of one page.
func withPipe(t *testing.T, args ...string) (s *service, log *os.File) {
	t.Helper()
	log, in, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { log.Close(); in.Close() })
	const setSize = 1031 // F_SETPIPE_SZ of Linux
	if _, _, err := syscall.Syscall(syscall.SYS_FCNTL, in.Fd(), setSize, 4096); err != 0 {
		t.Fatal(err)
	}
	s = newService(t, args...)
	s.stderr = in
	s.start()
	in.Close()
	return s, log
}

// hangup makes the service log a line.
func (s *service) hangup() {
	s.t.Helper()
	must(s.t, s.cmd.Process.Signal(syscall.SIGHUP))
}

// The program that reads the log dies, as systemd's journal may. The service continues, and reports that its log is lost.
func TestServiceSurvivesTheReaderOfItsLog(t *testing.T) {
	t.Parallel()
	s, log := withPipe(t)
	must(t, log.Close())
	s.namesAfter(s.hangup, "The log of this node cannot be written: write /dev/stderr: broken pipe.", "Check where standard error")
	if page := s.metrics(t); strings.Contains(page, "muster_log_lost_lines_total 0\n") || !strings.Contains(page, "muster_log_lost_lines_total ") {
		t.Error("no line is counted")
	}
	s.stop()
}

// The program that reads the log hangs. The service still answers, and continues its log when the program continues.
func TestServiceDoesNotWaitForTheReaderOfItsLog(t *testing.T) {
	t.Parallel()
	s, log := withPipe(t)
	s.namesAfter(s.hangup, "The log of this node cannot be written: the process that reads it has stopped reading.", "that has ended or hangs")
	createLocation(t, "custom-one", s, s)
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for all := bufio.NewScanner(log); all.Scan(); {
			lines <- all.Text()
		}
	}()
	waittest.Until(t, "the log to be well", func() bool { return !strings.Contains(strings.Join(s.troubles(), "\n"), "The log of this node") })
	s.stop()
	var all []string
	for line := range lines {
		all = append(all, line)
	}
	if text := strings.Join(all, "\n"); !strings.Contains(text, "msg=stopped") {
		t.Errorf("the log has no end:\n%s", text)
	}
}
