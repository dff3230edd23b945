package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWriteReplacesContentAndLeavesNothingElse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	for _, content := range []string{"first", "second, longer", ""} {
		if err := Write(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Fatalf("after writing %q: got %q, %v", content, got, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("want the file alone, got %v, %v", entries, err)
	}
}

func TestWriteThatFailsKeepsTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	// A directory with something in it cannot be replaced by a file: the rename fails after the content was written.
	if err := os.MkdirAll(filepath.Join(path, "child"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("new"), 0o600); err == nil {
		t.Fatal("want an error, got none")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || !entries[0].IsDir() {
		t.Fatalf("want the old entry alone, got %v, %v", entries, err)
	}
}

// TestWriteWhileItIsRead: Windows refuses to replace a file that is open.
func TestWriteWhileItIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if err := Write(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { reader.Close() })
	if err := Write(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "new" {
		t.Errorf("got %q, %v", got, err)
	}
}
