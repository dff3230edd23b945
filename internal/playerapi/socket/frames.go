package socket

import (
	"strconv"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/frames"
)

// Opcodes of RFC 6455, 5.2.
const (
	Text  = frames.Text
	Close = frames.Close
	Ping  = frames.Ping
	Pong  = frames.Pong
)

// Append appends one unmasked frame, whose payload comes in parts.
func Append(b []byte, opcode byte, parts ...[]byte) []byte { return frames.Append(b, opcode, parts...) }

// Heartbeat has two frames: a ping, which libraries answer by themselves, and a message, which clients see.
var Heartbeat = Append(Append(nil, Ping), Text, []byte(`{"type":"ping"}`))

// Buffers are shared by all streams, so that an idle stream holds none.
var Buffers = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}

// KeptFrame is the capacity of the largest buffer that returns to the pool, so that a rare huge one is not kept forever.
const KeptFrame = 64 << 10

// PutBuffer returns a buffer to Buffers. The caller must not use it any more.
func PutBuffer(b *[]byte) {
	if cap(*b) <= KeptFrame {
		*b = (*b)[:0]
		Buffers.Put(b)
	}
}

// Close codes: docs/spec/player-api.md#close-codes. After 4401, 4409 and 4410 a client does not reconnect by itself.
const (
	Unauthenticated = 4401
	Superseded      = 4406
	TooSlow         = 4408
	Replaced        = 4409
	Ended           = 4410
	RateLimited     = 4429
	Draining        = 4503
)

var closeTexts = map[uint16]string{
	Unauthenticated: "unauthenticated", Superseded: "stream superseded", TooSlow: "too slow", Replaced: "session replaced",
	Ended: "session ended", RateLimited: "rate limited", Draining: "draining",
}

// Bye tells a client how long to wait before it reconnects.
func Bye(after time.Duration) []byte {
	return []byte(`{"type":"bye","reconnect_after_ms":` + strconv.FormatInt(after.Milliseconds(), 10) + `}`)
}

// AppendClose appends a close frame with a code of this API.
func AppendClose(b []byte, code uint16) []byte {
	return Append(b, Close, []byte{byte(code >> 8), byte(code)}, []byte(closeTexts[code]))
}

// AppendCloseAnswer appends the answer to a client's close frame, which may have no code.
func AppendCloseAnswer(b []byte, code uint16) []byte {
	if code == 0 {
		return Append(b, Close)
	}
	return Append(b, Close, []byte{byte(code >> 8), byte(code)})
}
