package embeddb_test

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
)

// withoutNextLog is a disk on which no log can be created, once the old one had its chance to be removed.
type withoutNextLog struct {
	vfs.FS
	removed atomic.Bool
}

func (f *withoutNextLog) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !strings.HasSuffix(name, ".log") {
		return f.FS.Create(name, category)
	}
	for i := 0; i < 100 && !f.removed.Load(); i++ { // Pebble removes it in the background
		time.Sleep(time.Millisecond)
	}
	return nil, syscall.EIO
}

func (f *withoutNextLog) Remove(name string) error {
	err := f.FS.Remove(name)
	if strings.HasSuffix(name, ".log") {
		f.removed.Store(true)
	}
	return err
}

// A process that ends while it opens a database leaves one that can be opened, with the same record of how far the log was synced.
func TestTheOldLogStaysUntilThereIsANewOne(t *testing.T) {
	disk := embeddbtest.NewDisk()
	db, err := embeddb.Open(embeddb.Config{Dir: "data", FS: disk}, func(*pebble.Options) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Set([]byte("key"), []byte("value"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	synced := db.LogPosition()
	left := disk.Crash()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := embeddb.Open(embeddb.Config{Dir: "data", FS: &withoutNextLog{FS: left}, Synced: synced}, func(*pebble.Options) {}); err == nil {
		t.Fatal("a database without a log was opened")
	}
	db, err = embeddb.Open(embeddb.Config{Dir: "data", FS: left, Synced: synced}, func(*pebble.Options) {})
	if err != nil {
		t.Fatalf("opened again: %v", err)
	}
	if _, closer, err := db.Get([]byte("key")); err != nil {
		t.Error(err)
	} else {
		_ = closer.Close()
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := left.List("data")
	if err != nil {
		t.Fatal(err)
	}
	logs := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			logs++
		}
	}
	if logs > 2 {
		t.Errorf("%d logs are left: %q", logs, names)
	}
}
