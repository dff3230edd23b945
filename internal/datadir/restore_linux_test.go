package datadir

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/diskfull"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// A full disk ends a restore, because no other work frees space while an operator waits for the command. With more room the next one begins again.
func TestRestoreOnAFullDisk(t *testing.T) {
	h := mustOpen(t, furnished(t))
	defer h.close()
	var records []archive.Record
	for i := range 80 {
		data := make([]byte, 100<<10)
		_, _ = rand.Read(data) // it never fails
		records = append(records, archive.Record{Kind: archive.Placement, ID: fmt.Sprint("large-", i), Created: 1, Ended: time.Now().UnixMilli() - 1, Data: data})
	}
	if err := h.data.Archive.Put(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	h.must(&hosting.CreateLocation{Name: "custom-last"})
	f, err := h.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file := &bytes.Buffer{}
	if _, err := backup.Write(t.Context(), file, backup.Content{
		Head:  backup.Head{Installation: h.data.Archive.Installation(), Entry: f.Entry, Level: f.Level, State: f.Last.Std(), Forgotten: f.Forgotten},
		State: f.Write, Secret: h.data.Secret, Archive: h.data.Archive,
	}); err != nil {
		t.Fatal(err)
	}

	disk := t.TempDir()
	mount := func(options string) {
		t.Helper()
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", disk).CombinedOutput(); err != nil {
			if os.Getenv("CI") != "" { // it runs every test, as root
				t.Fatalf("mount: %v %s", err, out)
			}
			t.Skipf("no right to mount a small disk here: %v %s", err, out)
		}
	}
	mount("size=4m")
	defer exec.Command("umount", disk).Run()
	dir := filepath.Join(disk, "new")
	ended := make(chan error, 1)
	restore := func() error {
		go func() {
			_, _, err := Restore(t.Context(), Options{Dir: dir}, opener(file.Bytes()))
			ended <- err
		}()
		select {
		case err := <-ended:
			return err
		case <-time.After(time.Minute):
			t.Fatal("the restore hangs")
			return nil
		}
	}
	if err := restore(); !diskfull.Is(err) {
		t.Fatal(err)
	}
	mount("remount,size=64m")
	if err := restore(); err != nil {
		t.Fatal(err)
	}
}
