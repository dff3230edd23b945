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

// WriteFile puts a synced file in the place of the one that is there, if there is one. It keeps content as it is: a file
// system may change what it is given to write.
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
