//go:build unix

package listen

import (
	"io"
	"syscall"
)

// readsNow reports whether readNow can read.
const readsNow = true

// readNow reads the data that has arrived, if any, without waiting.
func (c *conn) readNow(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	gone := raw.Read(func(fd uintptr) bool {
		n, err = readOnce(fd, p)
		return true
	})
	if gone != nil {
		return 0, gone
	}
	return n, err
}

// await waits until data has arrived or the connection has ended. It reads data that arrived before it started to wait, as far as it fits into the
// connection's own buffer, and leaves the rest to Read. A client that was silent thus costs one attempt to read and one read.
func (c *conn) await() (err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	waited, n := false, 0
	gone := raw.Read(func(fd uintptr) bool {
		if waited {
			return true
		}
		waited = true
		n, err = readOnce(fd, c.room[:])
		return !isNothingYet(err)
	})
	switch {
	case gone != nil:
		return gone
	case isNothingYet(err):
		c.more = true
		return nil
	}
	c.unread, c.more = c.room[:n], n == len(c.room)
	return err
}

func isNothingYet(err error) bool { return err == error(nothingYet{}) }

// readOnce reads from a non-blocking descriptor.
func readOnce(fd uintptr, p []byte) (n int, err error) {
	for {
		switch n, err = syscall.Read(int(fd), p); {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return 0, nothingYet{}
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}
