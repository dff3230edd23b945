//go:build unix

package listen

import (
	"io"
	"syscall"
)

// readsNow says whether readNow can read.
const readsNow = true

// readNow reads the data that has arrived, if any, and does not wait.
func (c *conn) readNow(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	gone := raw.Read(func(fd uintptr) bool {
		for {
			if n, err = syscall.Read(int(fd), p); err != syscall.EINTR {
				return true
			}
		}
	})
	n = max(n, 0) // it is -1 beside an error
	switch {
	case gone != nil:
		return 0, gone
	case err == syscall.EAGAIN:
		return 0, nothingYet{}
	case err == nil && n == 0:
		return 0, io.EOF
	}
	return n, err
}
