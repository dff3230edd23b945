package e2e

import (
	"bufio"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The doctor soon reports that a service hangs, and prints its findings while it is still examining.
func TestDoctorOfAServiceThatHangs(t *testing.T) {
	t.Parallel()
	s := startService(t)
	s.prepare()
	must(t, s.cmd.Process.Signal(syscall.SIGSTOP))
	defer func() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }() // fails only when it is over
	cmd := exec.Command(musterBinary, "doctor", "--dev", "--data", s.data, "--listen", s.address)
	cmd.Env = cleanEnvironment()
	out, err := cmd.StdoutPipe()
	must(t, err)
	began := time.Now()
	must(t, cmd.Start())
	var text strings.Builder
	var first time.Duration
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if first == 0 {
			first = time.Since(began)
		}
		text.WriteString(lines.Text() + "\n")
	}
	err = cmd.Wait()
	took := time.Since(began)
	t.Logf("the first finding after %v, all after %v", first, took)
	if said := text.String(); err == nil || first > took/2 || took > 30*time.Second || strings.Count(said, "the service hangs") != 1 || strings.Contains(said, "firewall") || !strings.Contains(said, "restart the service") {
		t.Errorf("after %v: %v\n%s", took, err, said)
	}
}
