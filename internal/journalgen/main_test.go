package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestCurrent compares the generated files with the schema.
func TestCurrent(t *testing.T) {
	files, err := generate(filepath.Join(root, "proto"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		if got, err := os.ReadFile(filepath.Join(root, path)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what proto/journal.proto says (%v); run go generate ./internal/journalgen", path, err)
		}
	}
}
