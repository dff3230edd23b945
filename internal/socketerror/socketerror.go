// Package socketerror recognizes errors of sockets on every system. On Windows they have numbers that the names of package syscall do not match.
package socketerror

import (
	"errors"
	"runtime"
	"syscall"
)

// InUse reports whether another program uses the address.
func InUse(err error) bool { return is(err, syscall.EADDRINUSE, 10048) }

// NotLocal reports whether this machine does not have the address.
func NotLocal(err error) bool { return is(err, syscall.EADDRNOTAVAIL, 10049) }

// Refused reports whether nothing listens at the address.
func Refused(err error) bool { return is(err, syscall.ECONNREFUSED, 10061) }

func is(err error, errno, ofWindows syscall.Errno) bool {
	if runtime.GOOS == "windows" {
		errno = ofWindows
	}
	return errors.Is(err, errno)
}
