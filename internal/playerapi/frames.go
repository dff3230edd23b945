package playerapi

import (
	"crypto/tls"
	"encoding/binary"
	"net"
	"strconv"
	"sync"
	"time"
)

// Opcodes of RFC 6455, 5.2.
const (
	opText  = 0x1
	opClose = 0x8
	opPing  = 0x9
	opPong  = 0xA
)

// appendFrame appends one unmasked frame, whose payload comes in parts.
func appendFrame(b []byte, opcode byte, parts ...[]byte) []byte {
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

// heartbeat is both: the frame that libraries answer by themselves, and the one that clients see.
var heartbeat = appendFrame(appendFrame(nil, opPing), opText, []byte(`{"type":"ping"}`))

// frameBuffers are shared by all streams, so that an idle one holds none.
var frameBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}

// keptFrame is the largest buffer that goes back: a rare huge one must not be held for ever.
const keptFrame = 64 << 10

func putBuffer(b *[]byte) {
	if cap(*b) <= keptFrame {
		*b = (*b)[:0]
		frameBuffers.Put(b)
	}
}

// Close codes: docs/spec/player-api.md#close-codes. After 4401, 4409 and 4410 a client does not come back by itself.
const (
	closeUnauthenticated = 4401
	closeSuperseded      = 4406
	closeSlow            = 4408
	closeReplaced        = 4409
	closeEnded           = 4410
	closeRate            = 4429
	closeDraining        = 4503
)

var closeTexts = map[uint16]string{
	closeUnauthenticated: "unauthenticated", closeSuperseded: "stream superseded", closeSlow: "too slow", closeReplaced: "session replaced",
	closeEnded: "session ended", closeRate: "rate limited", closeDraining: "draining",
}

// bye tells a client after which time to come back.
func bye(after time.Duration) []byte {
	return []byte(`{"type":"bye","reconnect_after_ms":` + strconv.FormatInt(after.Milliseconds(), 10) + `}`)
}

// closing is a close frame with a code of this API.
func closing(code uint16) []byte {
	return appendFrame(nil, opClose, []byte{byte(code >> 8), byte(code)}, []byte(closeTexts[code]))
}

// drop ends a connection without waiting for the client, which a close of TLS would do.
func drop(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	_ = c.Close() // fails when it is closed already
}
