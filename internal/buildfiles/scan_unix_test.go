//go:build unix

package buildfiles

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A link to a file of the build is that file; every other link is rejected by name. The directory itself may be named by a link.
func TestLinksInADirectory(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(dir, "build")
	must(os.MkdirAll(filepath.Join(root, "lib"), 0o755))
	must(os.WriteFile(filepath.Join(root, "lib", "game.so.1"), []byte("library"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600))
	must(os.Symlink("game.so.1", filepath.Join(root, "lib", "game.so")))
	must(os.Symlink(filepath.Join(root, "lib", "game.so"), filepath.Join(root, "absolute")))
	must(os.Symlink(root, filepath.Join(dir, "current")))
	for _, at := range []string{root, filepath.Join(dir, "current")} {
		s, err := Scan(at)
		must(err)
		var names []string
		for _, f := range s.Manifest.Files {
			names = append(names, f.Path)
			if f.Digest != DigestOf([]byte("library")) || !f.Executable {
				t.Errorf("%+v", f)
			}
			if _, err := s.Part(f.Parts[0].Digest); err != nil {
				t.Error(err)
			}
		}
		if got := strings.Join(names, " "); got != "absolute lib/game.so lib/game.so.1" {
			t.Errorf("%s: %s", at, got)
		}
	}
	for to, want := range map[string]string{
		"../secret": "outside", filepath.Join(dir, "secret"): "outside", "/etc": "outside", "../build/../secret": "outside", "..": "outside",
		"none": "leads nowhere", "bad": "leads nowhere", "lib": "is not a file",
	} {
		link := filepath.Join(root, "bad")
		must(os.Symlink(to, link))
		_, err := Scan(root)
		if r, ok := errors.AsType[*Rejected](err); !ok || !strings.Contains(r.Reason, "bad") || !strings.Contains(r.Reason, want) {
			t.Errorf("a link to %s: %v; want %q", to, err, want)
		}
		must(os.Remove(link))
	}
}
