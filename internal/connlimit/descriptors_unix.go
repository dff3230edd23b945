//go:build unix

package connlimit

import (
	"math"
	"syscall"
)

// Descriptors is how many files and connections the process may have open. Go raises the soft limit to the hard one
// before main runs.
func Descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return descriptorsUnknown
	}
	return int(min(uint64(limit.Cur), math.MaxInt32))
}

// descriptorsUnknown is a limit that every current system allows.
const descriptorsUnknown = 1024
