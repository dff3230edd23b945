//go:build unix

package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// pipe returns a named pipe. Whoever opens it to read waits for a writer, until the test ends.
func pipe(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if f, err := os.OpenFile(name, os.O_RDWR, 0); err == nil {
			f.Close()
		}
	})
	return name
}

// A check of a disk that never answers, to which a pipe without a writer comes close, does not block the others.
func TestCheckThatHangs(t *testing.T) {
	t.Parallel()
	c := healthy(t)
	c.Settings.TLSCert, c.Settings.TLSKey = pipe(t), "/nowhere/key.pem"
	var told []Finding
	c.Tell = func(f Finding) { told = append(told, f) }
	began := time.Now()
	found := Examine(t.Context(), c)
	want(t, found, "certificate", Failure, "did not finish within 1", "network file system")
	want(t, found, "InitSDK", Skipped)
	if took := time.Since(began); took > 2*diskPatience || !slices.Equal(found, told) {
		t.Errorf("after %v it told %+v, and found %+v", took, told, found)
	}
}
