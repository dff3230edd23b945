//go:build unix

package backup

import (
	"errors"
	"os"
	"syscall"
)

// hold locks a file until it is closed. It returns false if another process has locked it. Some network file systems have no locks.
func hold(f *os.File) bool {
	return !errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
