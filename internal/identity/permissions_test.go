package identity

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such bits")
	}
	for _, c := range []struct {
		name        string
		dir, secret fs.FileMode
		warns       string
		refuses     string
	}{
		{"as made", 0o700, 0o600, "", ""},
		{"a new installation", 0o700, 0, "", ""},
		{"a directory that others read", 0o755, 0o600, "chmod 700", ""},
		{"a directory that others pass through", 0o711, 0o600, "chmod 700", ""},
		{"a directory that its group reads", 0o750, 0o600, "", ""},
		{"a directory that its group writes", 0o770, 0o600, "group can replace", ""},
		{"a directory that others write", 0o777, 0o600, "", "chmod 700"},
		{"the same before there is a secret", 0o777, 0, "", "chmod 700"},
		{"one with the sticky bit", 0o777 | fs.ModeSticky, 0o600, "chmod 700", ""},
		{"a secret that others read", 0o700, 0o644, "", "chmod 600"},
		{"a secret that others write", 0o700, 0o602, "", "chmod 600"},
		{"a secret that its group reads", 0o700, 0o640, "chmod 600", ""},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if c.secret != 0 {
			path := filepath.Join(dir, secretFile)
			if err := os.WriteFile(path, make([]byte, secretSize), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.secret); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, c.dir); err != nil {
			t.Fatal(err)
		}
		warnings, err := CheckPermissions(dir)
		said := strings.Join(warnings, "\n")
		if (err != nil) != (c.refuses != "") || err != nil && !strings.Contains(err.Error(), c.refuses) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.refuses)
		}
		if err == nil && ((said != "") != (c.warns != "") || !strings.Contains(said, c.warns)) {
			t.Errorf("%s: warns %q, want %q", c.name, said, c.warns)
		}
	}
}
