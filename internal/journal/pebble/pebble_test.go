package pebble

import (
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/journal/journaltest"
)

func TestPebble(t *testing.T) {
	dir := t.TempDir()
	journaltest.Run(t, journaltest.Engine{
		Open: func(name string) (journal.Journal, error) {
			return Open(Options{Dir: filepath.Join(dir, name), Program: "the test"})
		},
		OneWriter: true, // the file lock keeps others out; the suite checks that instead of fencing
	})
}
