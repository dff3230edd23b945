package listen

import (
	"bytes"
	"crypto/tls"
	"reflect"
	"unsafe"
)

// handshakeBuffers are where crypto/tls keeps what it reads. They grow to the size of the client's hello, more than a
// kilobyte each with a post-quantum key share, and stay so while the connection lives: of an idle WebSocket that is a
// quarter of all it holds. There is no call that gives them back, so this reaches for them by name. A crypto/tls that has
// no such buffers is left as it is; the test of this file tells.
var handshakeBuffers = func() (offsets []uintptr) {
	of := reflect.TypeFor[tls.Conn]()
	for _, name := range []string{"rawInput", "hand"} {
		if f, ok := of.FieldByName(name); ok && f.Type == reflect.TypeFor[bytes.Buffer]() {
			offsets = append(offsets, f.Offset)
		}
	}
	return offsets
}()

// forgetHandshake gives back what a handshake has left behind. Nobody may read from the connection meanwhile. What was
// read and not used yet stays.
func forgetHandshake(c *tls.Conn) {
	if !c.ConnectionState().HandshakeComplete {
		return
	}
	for _, offset := range handshakeBuffers {
		if b := (*bytes.Buffer)(unsafe.Add(unsafe.Pointer(c), offset)); b.Len() == 0 {
			*b = bytes.Buffer{}
		}
	}
}
