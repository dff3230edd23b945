package frames

import (
	"crypto/tls"
	"encoding/binary"
	"net"
)

// Opcodes of RFC 6455, 5.2.
const (
	Text  = 0x1
	Close = 0x8
	Ping  = 0x9
	Pong  = 0xA
)

// Append appends one unmasked frame, whose payload comes in parts.
func Append(b []byte, opcode byte, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b = append(b, 0x80|opcode)
	switch {
	case n > 0xFFFF:
		b = append(b, 127)
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	case n > 125:
		b = append(b, 126)
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	default:
		b = append(b, byte(n))
	}
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// Drop ends a connection without a close frame. Unlike closing a TLS connection, it sends nothing and does not wait behind a blocked write.
func Drop(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	_ = c.Close() // fails if it is already closed
}
