// Package diskfull recognizes the errors of a full disk on every system.
package diskfull

import (
	"errors"
	"runtime"
	"syscall"
)

// Is reports whether an error means that there is no space on a disk, or none left of a user's quota.
func Is(err error) bool {
	if runtime.GOOS == "windows" {
		const handleDiskFull, diskFull = syscall.Errno(39), syscall.Errno(112)
		return errors.Is(err, handleDiskFull) || errors.Is(err, diskFull)
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
