package identity

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockFileExclusive waits until no other process or open file holds the lock. Windows drops it when the holder
// dies, so no stale lock can remain.
func lockFileExclusive(f *os.File) error {
	const wholeFile = ^uint32(0)
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, wholeFile, wholeFile, new(windows.Overlapped))
}
