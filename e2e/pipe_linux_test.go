package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/waittest"
)

// led runs a command with its standard output redirected to a file, and returns its other output.
func (s *service) led(path string, args ...string) (said string, err error) {
	s.t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	must(s.t, err)
	defer file.Close()
	var errors bytes.Buffer
	cmd := exec.Command(musterBinary, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = cleanEnvironment("HOME="+s.t.TempDir()), file, &errors
	err = cmd.Run()
	return errors.String(), err
}

// In a container with a read-only file system, a backup and a support bundle are written to standard output. A backup that could not be written does not count.
func TestThroughTheStandardOutput(t *testing.T) {
	t.Parallel()
	s := startService(t)
	createLocation(t, "custom-one", s, s)
	dir := t.TempDir()
	backup := []string{"backup", "--data", s.data, "--to", "-"}

	if said, err := s.led("/dev/full", backup...); err == nil || !strings.Contains(said, "no space left on device") {
		t.Errorf("to a full device: %v, %s", err, said)
	}
	const metric = "\nmuster_backup_last_success_timestamp_seconds "
	if _, _, page := sent(t, "GET", s.url()+"/metrics", ""); strings.Contains(page, metric) {
		t.Error("a backup that could not leave counts")
	}
	if out, err := s.commandFails(append(backup, "--keep", "2")...); err == nil || !strings.Contains(out, "standard output is neither") {
		t.Errorf("with --keep: %v, %s", err, out)
	}
	file := filepath.Join(dir, "backup")
	said, err := s.led(file, backup...)
	if err != nil || !strings.Contains(said, "standard output: ") {
		t.Fatalf("%v, %s", err, said)
	}
	verify := exec.Command(musterBinary, "restore", "--verify", "-")
	verify.Env = cleanEnvironment("HOME=" + t.TempDir())
	verify.Stdin, err = os.Open(file)
	must(t, err)
	if out, err := verify.CombinedOutput(); err != nil || !strings.Contains(string(out), "The backup is intact") {
		t.Errorf("from the standard input: %v, %s", err, out)
	}
	restored := newService(t)
	restored.command("restore", file, "--data", restored.data)
	restored.start()
	wantLocation(t, "custom-one", restored)
	waittest.Until(t, "the service to know the backup", func() bool {
		_, _, page := sent(t, "GET", s.url()+"/metrics", "")
		return strings.Contains(page, metric)
	})

	file = filepath.Join(dir, "bundle.tar.gz")
	if said, err := s.led(file, "support-bundle", "--data", s.data, "--listen", s.address, "--out", "-", "--processor", "0s"); err != nil || !strings.Contains(said, "and does not contain\n") {
		t.Fatalf("%v, %s", err, said)
	}
	if files := bundleAt(t, file); files["state.json"] == "" || files["doctor.json"] == "" {
		t.Errorf("the bundle has %v", files)
	}
}
