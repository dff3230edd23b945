package embeddbtest

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ReadFile reads a whole file.
func ReadFile(t testing.TB, files vfs.FS, path string) []byte {
	t.Helper()
	file, err := files.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// WriteFile writes and syncs a file, and replaces an existing one. It passes a copy of content, because a file system may change what it
// writes.
func WriteFile(t testing.TB, files vfs.FS, path string, content []byte) {
	t.Helper()
	file, err := files.Create(path, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = file.Write(bytes.Clone(content))
		err = errors.Join(err, file.Sync(), file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
