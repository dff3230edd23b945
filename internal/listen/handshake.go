package listen

import (
	"bytes"
	"crypto/tls"
	"reflect"
	"unsafe"
)

// readBuffers are where crypto/tls keeps what it reads. They grow to the size of the client's hello, more than a kilobyte each
// with a post-quantum key share, and to that of the records after it, and stay so while the connection lives: of an idle
// WebSocket that is a quarter of all it holds. There is no call that gives them back, so this reaches for them by name, for operators
// who ask for it: docs/decisions/0052. A crypto/tls that has no such buffers is left as it is; the test of this file tells.
var readBuffers = func() (offsets []uintptr) {
	for _, name := range []string{"rawInput", "hand"} {
		offsets = append(offsets, offsetOf[bytes.Buffer](name)...)
	}
	return offsets
}()

// lastRead looks into the first of these buffers, and holds it when all of it is read.
var lastRead = offsetOf[bytes.Reader]("input")

// offsetOf is where a TLS connection has a field of a name and type.
func offsetOf[T any](name string) []uintptr {
	if f, ok := reflect.TypeFor[tls.Conn]().FieldByName(name); ok && f.Type == reflect.TypeFor[T]() {
		return []uintptr{f.Offset}
	}
	return nil
}

// forgetHandshake gives back what a handshake has left behind. Nobody may read from the connection meanwhile. What was
// read and not used yet stays.
func forgetHandshake(c *tls.Conn) {
	if c.ConnectionState().HandshakeComplete {
		emptyBuffers(c)
	}
}

// emptyBuffers gives back what reading has left behind, on the same conditions.
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
