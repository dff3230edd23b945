package embeddb_test

import (
	"strings"
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

// cutAtMarker is a disk whose power is cut directly after a manifest's marker was created. Of all unsynced data only the marker's name survives.
type cutAtMarker struct {
	*vfs.MemFS
	after []*vfs.MemFS // what each cut left
}

func (f *cutAtMarker) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(f.PathBase(name), "marker.manifest.") {
		after := f.CrashClone(vfs.CrashCloneCfg{})
		marker, err := after.Create(name, category)
		if err != nil {
			return nil, err
		}
		if err := marker.Close(); err != nil {
			return nil, err
		}
		f.after = append(f.after, after)
	}
	return f.MemFS.Create(name, category)
}

// A marker that survives a power cut names a manifest that survives, too: that of a new database, and those that follow.
func TestTheManifestSurvivesWithItsMarker(t *testing.T) {
	disk := &cutAtMarker{MemFS: vfs.NewCrashableMem()}
	config := embeddb.Config{Dir: "data", FS: disk}
	for range 3 { // each opening begins a manifest
		db, err := embeddb.Open(config, func(*pebble.Options) {})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Set([]byte("key"), []byte("value"), pebble.Sync); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(disk.after) < 2 {
		t.Fatalf("%d manifests were begun, want several", len(disk.after))
	}
	for n, after := range disk.after {
		db, err := embeddb.Open(embeddb.Config{Dir: "data", FS: after}, func(*pebble.Options) {})
		if err != nil {
			t.Errorf("after a power cut at marker %d: %v", n+1, err)
			continue
		}
		if n > 0 {
			if _, closer, err := db.Get([]byte("key")); err != nil {
				t.Errorf("what was synced before the power cut at marker %d: %v", n+1, err)
			} else {
				_ = closer.Close()
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
