package export

import (
	"net"

	"golang.org/x/sys/unix"
)

// unacknowledged returns how many of the written bytes the other machine has not acknowledged.
func unacknowledged(c *net.TCPConn) (left int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		if left, failed = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); failed != nil {
			return
		}
		if number, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err == nil && number != 0 {
			failed = unix.Errno(number)
		}
	})
	if err == nil {
		err = failed
	}
	return left, err
}
