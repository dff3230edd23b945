package powertest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Synced data survives a cut, unsynced data may be lost, and no data can be written afterwards.
func TestWhatSurvivesACut(t *testing.T) {
	lost := 0
	for seed := range uint64(10) {
		d := Mount(t, seed)
		big := bytes.Repeat([]byte("muster"), 20_000)
		write := func(name string, sync bool) {
			f, err := os.Create(filepath.Join(d.Dir(), name))
			if err == nil {
				_, err = f.Write(big)
			}
			if err == nil && sync {
				err = f.Sync()
			}
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		if err := os.Mkdir(filepath.Join(d.Dir(), "dir"), 0o700); err != nil {
			t.Fatal(err)
		}
		write("dir/synced", true)
		for _, name := range []string{"dir", "."} {
			dir, err := os.Open(filepath.Join(d.Dir(), name))
			if err == nil {
				err = dir.Sync()
			}
			if err != nil {
				t.Fatal(err)
			}
			dir.Close()
		}
		write("dir/unsynced", false)
		if err := os.Rename(filepath.Join(d.Dir(), "dir/unsynced"), filepath.Join(d.Dir(), "dir/renamed")); err != nil {
			t.Fatal(err)
		}
		d.Cut()
		if err := os.WriteFile(filepath.Join(d.Dir(), "late"), big, 0o600); err == nil {
			t.Error("a file was written without power")
		}
		if err := d.Restore(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(d.Dir(), "dir/synced")); err != nil || !bytes.Equal(got, big) {
			t.Errorf("what was synced: got %d bytes and %v", len(got), err)
		}
		if got, err := os.ReadFile(filepath.Join(d.Dir(), "dir/renamed")); err != nil || !bytes.Equal(got, big) {
			lost++
		}
	}
	if lost == 0 {
		t.Error("nothing that was not synced was ever lost")
	}
}
