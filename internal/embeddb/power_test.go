package embeddb_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/embeddb"
)

// After a power cut directly after the first synced write the database exists: not only its files, but also the names of all directories
// above them.
func TestTheNamesOfNewDirectoriesSurviveAPowerCut(t *testing.T) {
	mem := vfs.NewCrashableMem()
	db, err := embeddb.Open(embeddb.Config{Dir: "var/muster/journal", FS: mem}, func(*pebble.Options) {})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Set([]byte("key"), []byte("value"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	after, err := embeddb.Open(embeddb.Config{Dir: "var/muster/journal", FS: mem.CrashClone(vfs.CrashCloneCfg{})}, func(*pebble.Options) {})
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if value, closer, err := after.Get([]byte("key")); err != nil {
		t.Errorf("what was synced before the power cut: %v", err)
	} else {
		if string(value) != "value" {
			t.Errorf("what was synced before the power cut: got %q", value)
		}
		closer.Close()
	}
}
