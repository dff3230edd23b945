package datadir

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/identity"
)

// backedUp returns a backup of a furnished directory.
func backedUp(t *testing.T) (content []byte, secret identity.CellSecret) {
	t.Helper()
	h := mustOpen(t, furnished(t))
	defer h.close()
	time.Sleep(2 * time.Millisecond) // behind everything that has ended there is a change
	h.must(&hosting.CreateLocation{Name: "custom-last"})
	f, err := h.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	s, err := backup.Write(t.Context(), out, backup.Content{
		Head:  backup.Head{Installation: h.data.Archive.Installation(), Entry: f.Entry, Level: f.Level, State: f.Last.Std(), Forgotten: f.Forgotten},
		State: f.Write, Secret: h.data.Secret, Archive: h.data.Archive,
	})
	if err != nil || len(s.Records) != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	return out.Bytes(), h.data.Secret
}

func opener(content []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
}

// A restored directory starts, and has the live and the ended records, and the keys with their secret.
func TestRestore(t *testing.T) {
	file, secret := backedUp(t)
	dir := filepath.Join(t.TempDir(), "new")
	if _, _, err := Restore(t.Context(), Options{Dir: dir}, opener(file)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"custom-a", "custom-b"} { // also behind its own first changes
		h := mustOpen(t, dir)
		if !h.finds("p0") || !h.finds("p4") || !h.keyWorks() || h.data.Secret.Check() != secret.Check() {
			t.Errorf("placements found: %t, %t; the key works: %t", h.finds("p0"), h.finds("p4"), h.keyWorks())
		}
		h.must(&hosting.CreateLocation{Name: name})
		h.close()
	}
	if _, _, err := Restore(t.Context(), Options{Dir: dir}, opener(file)); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("over a directory in use: %v", err)
	}
	h := mustOpen(t, dir)
	defer h.close()
	if !h.finds("p0") {
		t.Error("the refused restore has changed the directory")
	}
}

// A directory with other content is refused before the backup is read, and is not changed.
func TestRestoreIntoADirectoryOfSomethingElse(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	opened := false
	_, _, err := Restore(t.Context(), Options{Dir: dir}, func() (io.ReadCloser, error) {
		opened = true
		return nil, errors.New("the backup is read")
	})
	if err == nil || !strings.Contains(err.Error(), "not empty: it contains notes") || opened {
		t.Error(err)
	}
	if there, err := os.ReadDir(dir); err != nil || len(there) != 1 {
		t.Errorf("left %v, %v", there, err)
	}
}

// The directory of an interrupted restore does not start, as a single machine or as a node, and the next restore begins again.
func TestInterruptedRestore(t *testing.T) {
	file, _ := backedUp(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Restore(ctx, Options{Dir: dir}, opener(file)); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	unfinished := func(err error) {
		t.Helper()
		if _, ok := errors.AsType[*Unfinished](err); !ok {
			t.Errorf("want that the restore has not finished, got %v", err)
		}
	}
	_, err := open(t, dir)
	unfinished(err)
	_, err = OpenNode(Options{Dir: dir}, nil)
	unfinished(err)
	if _, _, err := Restore(t.Context(), Options{Dir: dir}, opener(file)); err != nil {
		t.Fatal(err)
	}
	h := mustOpen(t, dir)
	defer h.close()
	if !h.finds("p0") {
		t.Error("a placement is missing")
	}
}

// A restore that was killed while it wrote its first file leaves only the temporary file. The next restore begins again.
func TestRestoreInterruptedInItsFirstFile(t *testing.T) {
	file, _ := backedUp(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "."+pendingFile+".123456"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Restore(t.Context(), Options{Dir: dir}, opener(file)); err != nil {
		t.Fatal(err)
	}
	h := mustOpen(t, dir)
	defer h.close()
	if !h.finds("p0") {
		t.Error("a placement is missing")
	}
}

// A damaged backup changes nothing.
func TestRestoreOfADamagedBackup(t *testing.T) {
	file, _ := backedUp(t)
	content := bytes.Clone(file)
	content[len(content)/2] ^= 1
	dir := filepath.Join(t.TempDir(), "new")
	if _, _, err := Restore(t.Context(), Options{Dir: dir}, opener(content)); !errors.Is(err, backup.ErrDamaged) {
		t.Errorf("a damaged backup: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is there: %v", err)
	}
}
