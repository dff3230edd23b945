package link

import (
	"net"

	"golang.org/x/sys/unix"
)

// noticeSilence ends a connection whose peer acknowledges nothing: keep-alive works only while nothing is sent. tcp(7), TCP_USER_TIMEOUT.
func noticeSilence(c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return // it is closed
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silenceMax.Milliseconds())) // without it, TCP gives up later
	})
}
