package listen

import (
	"bytes"
	"crypto/tls"
	"reflect"
	"unsafe"
)

// readBuffers are the offsets of crypto/tls's read buffers. The buffers grow to the size of the client's hello, more than a kilobyte each with a
// post-quantum key share, and of the records after it. They keep that size while the connection is open, which is a quarter of an idle
// WebSocket's memory. crypto/tls has no call to release them, so this code finds them by name, for operators who enable it: docs/decisions/0052.
// If crypto/tls has no such buffers, nothing happens; this file's test detects that.
var readBuffers = func() (offsets []uintptr) {
	for _, name := range []string{"rawInput", "hand"} {
		offsets = append(offsets, offsetOf[bytes.Buffer](name)...)
	}
	return offsets
}()

// lastRead is the offset of a reader that refers to the first of these buffers even after reading all of it.
var lastRead = offsetOf[bytes.Reader]("input")

// offsetOf returns the offsets of a TLS connection's fields with a name and type.
func offsetOf[T any](name string) []uintptr {
	if f, ok := reflect.TypeFor[tls.Conn]().FieldByName(name); ok && f.Type == reflect.TypeFor[T]() {
		return []uintptr{f.Offset}
	}
	return nil
}

// forgetHandshake releases the memory left over from a handshake. No other goroutine may read from the connection meanwhile. Data that was read
// but not consumed yet is kept.
func forgetHandshake(c *tls.Conn) {
	if c.ConnectionState().HandshakeComplete {
		emptyBuffers(c)
	}
}

// emptyBuffers releases the memory left over from reading, under the same conditions.
func emptyBuffers(c *tls.Conn) {
	for _, offset := range readBuffers {
		if b := (*bytes.Buffer)(unsafe.Add(unsafe.Pointer(c), offset)); b.Len() == 0 {
			*b = bytes.Buffer{}
		}
	}
	for _, offset := range lastRead {
		if r := (*bytes.Reader)(unsafe.Add(unsafe.Pointer(c), offset)); r.Len() == 0 {
			*r = bytes.Reader{}
		}
	}
}
