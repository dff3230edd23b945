package bundle

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A pipe among the logs does not make the agent wait for a writer.
func TestPipe(t *testing.T) {
	base := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(base, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, texts := read(t, Source{Paths: []string{"pipe"}, Dirs: []Dir{{"game", base}}})
	if !strings.Contains(texts["ReadMe.txt"], "game/pipe: not a regular file") {
		t.Errorf("got %v", texts)
	}
}
