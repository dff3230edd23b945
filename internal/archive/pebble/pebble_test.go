package pebble

import (
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/archive/archivetest"
)

func TestPebble(t *testing.T) {
	dir := t.TempDir()
	archivetest.Run(t, archivetest.Engine{Open: func(name string) (archive.Archive, error) {
		return Open(Options{Dir: filepath.Join(dir, name), Program: "the test"})
	}})
}
