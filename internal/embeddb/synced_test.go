package embeddb_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"testing"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
)

// A record that could once not be written keeps its position, which shows losses before it, until the log becomes shorter than the record says.
func TestSyncedThatCannotBeWritten(t *testing.T) {
	const path = "synced"
	disk := embeddbtest.NewDisk()
	s := embeddb.OpenSynced(disk, path, slog.New(slog.DiscardHandler))
	s.Note(embeddb.Synced{Entry: 5})
	s.Sync()
	disk.FailAt(1, errors.New("failing on purpose"), true)
	s.Note(embeddb.Synced{Entry: 6})
	if !disk.Met() {
		t.Fatal("the write did not fail")
	}
	disk.FailAt(1<<30, nil, true)
	s.Note(embeddb.Synced{Entry: 7})
	if got, err := embeddb.ReadSynced(disk, path); err != nil || got.Entry != 5 {
		t.Errorf("got entry %d and %v, want the 5 that was written", got.Entry, err)
	}
	s.Shorten(embeddb.Synced{Entry: 4})
	if got, err := embeddb.ReadSynced(disk.Crash(), path); !errors.Is(err, fs.ErrNotExist) && got.Entry > 4 {
		t.Errorf("the log is shorter, and the record says %d, %v", got.Entry, err)
	}
	s.Close()
}
