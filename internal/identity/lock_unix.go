//go:build unix

package identity

import (
	"os"
	"syscall"
)

// lockFileExclusive waits until no other process or open file holds the lock. The kernel drops it when the holder
// dies, so no stale lock can remain.
func lockFileExclusive(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			return err
		}
	}
}
