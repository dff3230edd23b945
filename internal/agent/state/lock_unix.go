//go:build unix

package state

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock locks a file. Go closes the descriptor in programs that it starts, so game servers do not hold the lock.
func lock(path string) (func(), error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, err
	}
	return func() { file.Close() }, nil
}
