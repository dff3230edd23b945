package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestRestoreAsRoot: files that root restores into an empty directory belong to the directory's owner, such as the service's user in a package.
func TestRestoreAsRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		cannotRun(t, "not root")
	}
	s := startService(t)
	const nobody = 65534
	file, dir := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "data")
	s.command("backup", "--data", s.data, "--to", file)
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.Chown(dir, nobody, nobody))
	s.command("restore", file, "--data", dir)
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Sys().(*syscall.Stat_t).Uid != nobody {
			t.Errorf("%s belongs to user %d", path, info.Sys().(*syscall.Stat_t).Uid)
		}
		return err
	}))
}
