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
		n, err = readOnce(fd, p)
		return true
	})
	if gone != nil {
		return 0, gone
	}
	return n, err
}

// await waits until data has arrived, or the end. It takes what has come before it began to wait, as far as room for it is in the connection, and leaves the
// rest to Read, so that a client that was silent costs one attempt to read and one read.
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

// readOnce reads from a descriptor that does not wait.
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
