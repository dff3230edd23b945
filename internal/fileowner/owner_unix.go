//go:build unix

// Package fileowner checks to which user of the machine a file belongs.
package fileowner

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Check refuses what belongs to another user, who can read and replace it. Root may run the service on the files of another
// user, and a user on files that root has prepared. Windows is not checked.
func Check(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	own := os.Geteuid()
	if !ok || own == 0 || stat.Uid == 0 || int(stat.Uid) == own {
		return nil
	}
	return fmt.Errorf("%s belongs to the user with id %d, and this service runs as the one with id %d: the owner can read and replace it; want chown -R %[3]d, or run as the owner",
		path, stat.Uid, own)
}
