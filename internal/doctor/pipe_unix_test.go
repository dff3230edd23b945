//go:build unix

package doctor

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
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
