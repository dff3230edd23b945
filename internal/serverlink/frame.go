package serverlink

import (
	"encoding/binary"
	"sync"
)

// headRoom is space for the longest head of an unmasked frame: two bytes and an 8-byte length.
const headRoom = 10

// frameBuffers are shared by all links, so that an idle link holds no buffer.
var frameBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}

// keptFrame is the largest buffer that returns to the pool, so that a rare huge push does not occupy memory forever.
const keptFrame = 64 << 10

// newFrame returns a buffer for a payload. link.send, link.post and putFrame return it to the pool.
func newFrame() *[]byte {
	b := frameBuffers.Get().(*[]byte)
	*b = append((*b)[:0], make([]byte, headRoom)...)
	return b
}

func putFrame(b *[]byte) {
	if cap(*b) <= keptFrame {
		frameBuffers.Put(b)
	}
}

// seal writes the frame head in front of the payload and returns the whole frame. The service does not fragment
// messages, because no SDK is known to accept fragments.
func seal(b []byte, opcode byte) []byte {
	n := len(b) - headRoom
	switch {
	case n > 0xFFFF:
		b[1] = 127
		binary.BigEndian.PutUint64(b[2:], uint64(n))
	case n > 125:
		b = b[6:]
		b[1] = 126
		binary.BigEndian.PutUint16(b[2:], uint16(n))
	default:
		b = b[8:]
		b[1] = byte(n)
	}
	b[0] = 0x80 | opcode
	return b
}
