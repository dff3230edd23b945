package link

import (
	"net"

	"golang.org/x/sys/unix"
)

// noticeSilence makes the system close a connection whose peer stops acknowledging data, because keep-alive works only while no data is
// sent. tcp(7), TCP_USER_TIMEOUT.
func noticeSilence(c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return // it is closed
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silenceMax.Milliseconds())) // without the option, TCP gives up later
	})
}
