package frames

import (
	"crypto/tls"
	"net"
)

// Drop ends a connection without a close frame. Unlike closing a TLS connection, it sends nothing and does not wait behind a blocked write.
func Drop(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	_ = c.Close() // fails if it is already closed
}
