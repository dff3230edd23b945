// Package frames reads WebSocket frames from thousands of connections that are silent most of the time.
//
// For a silent client, a goroutine waits that has called next to nothing and therefore still has its initial stack. When data arrives, it reads and
// handles the data. When no more data is there, it ends, and a new goroutine waits. If a goroutine waited after it has read, an idle connection over
// TLS would cost about twice as much.
//
// A Reader needs no lock: starting await is the last thing that read does, so only one goroutine works on a connection at any time.
//
// # Buffers
//
// Bytes are read into one buffer from a pool. Complete frames in it are unmasked in place and passed to the handler as slices of it. A partial frame
// moves to the front. When nothing is left, the buffer returns to the pool, so a client that is silent between frames holds none. A buffer grows only
// when received data fills it, to twice its size or the size of the frame, whichever is less: a head that announces 16 MiB costs its sender as many
// bytes as it costs the service. Fragments are copied together, and the head of each is checked against the rest of MessageMax. So a connection holds
// at most one frame and one message, each of MessageMax bytes plus the slack from doubling, and only if the client sent as much.
//
// Frames are checked as early as possible: a frame that will be refused is refused at its first wrong byte, before its payload is buffered.
package frames

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/warm"
)

// Handler receives what a client sends, in order, one call at a time. Arguments are valid until the call returns.
type Handler interface {
	Ping(payload []byte)
	Pong()
	Message(data []byte)
	Wrong(v *Violation) // later bytes are read and discarded, so that no reset overtakes the close frame
	End(err error)      // the last call: *Closed, or why the connection was lost. The connection is still open.
}

// Closed is a client's close frame. Code is 0 if the frame has none.
type Closed struct {
	Code   uint16
	Reason string
}

func (e *Closed) Error() string {
	return fmt.Sprintf("closed by its client with %d %.125q", e.Code, e.Reason)
}

// Violation is a violation of the protocol by a client. Code is the code for the close frame.
type Violation struct {
	Code uint16
	Text string
}

// Close codes of RFC 6455, 7.4.1.
const (
	CodeProtocol = 1002
	CodeNoText   = 1007
	CodeTooLarge = 1009
)

// patient is a connection on which waiting for the peer is separate from reading. After ReadNoWait, Read does not wait: if there is no data, its
// error has NothingYet. Await waits until data has arrived. Ended returns why nothing more can be read: the connection is closed, or its read
// deadline has passed; nil: neither.
type patient interface {
	ReadNoWait()
	Await() error
	Ended() error
}

type nothingYet interface {
	error
	NothingYet() bool
}

// Config is shared by all connections of a door. It must not change.
type Config struct {
	MessageMax int // most bytes of a message, in one frame or in fragments

	// Pace bounds the rate at which a connection's frames are read. A frame counts one, plus one for each whole KiB. What exceeds the rate stays
	// unread in the client's own network buffers, so a client that floods slows down only itself.
	Pace rate.Limit

	AnyText bool // accept texts that are not UTF-8, for which RFC 6455, 8.1, closes the connection

	Running *warm.Group   // counts the goroutines
	Panics  *panics.Guard // confines a panic to its connection; nil: a panic ends the process
	Door    string        // the label under which Panics counts it
}

// Reader reads one connection. It holds no buffer while the client is silent.
type Reader struct {
	conn    net.Conn
	waits   patient // nil: conn can only wait by reading
	handler Handler
	config  *Config
	full    int64 // when the bucket of Pace will be full again, as steady.Nanos

	held   *[]byte // a partially received frame
	whole  []byte  // the fragments of a message received so far
	opened byte    // opcode of that message; 0: none
	deaf   bool    // a violation was received
}

// Read reads from a connection until it ends.
func Read(conn net.Conn, c *Config, h Handler) {
	r := &Reader{conn: conn, handler: h, config: c}
	under := conn
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		under = t.NetConn()
	}
	if w, ok := under.(patient); ok {
		w.ReadNoWait()
		r.waits = w
	}
	r.config.Running.Go(r.read)
}

// await waits for data. A silent client costs nothing else.
func (r *Reader) await() {
	defer r.config.Panics.Confine(r.config.Door, r.fail)
	if err := r.waits.Await(); err != nil {
		r.end(err)
		return
	}
	r.config.Running.Go(r.read)
}

func (r *Reader) end(err error) {
	r.put()
	r.handler.End(err)
}

// errPanicked is the reason for the end of a connection whose handler panicked.
var errPanicked = errors.New("a panic while its frames were handled")

func (r *Reader) fail() {
	r.held = nil // it may still be in use
	defer r.conn.Close()
	r.handler.End(errPanicked)
}

// read reads everything that has arrived.
func (r *Reader) read() {
	defer r.config.Panics.Confine(r.config.Door, r.fail)
	if r.held == nil {
		r.held = buffers.Get().(*[]byte)
	}
	for {
		b := *r.held
		n, err := r.conn.Read(b[len(b):cap(b)])
		*r.held = b[:len(b)+n]
		if n > 0 && !r.deaf {
			closed, wrong, ended := r.take()
			if ended != nil {
				r.end(ended)
				return
			}
			if wrong != nil {
				r.deaf = true
				r.handler.Wrong(wrong)
			}
			if closed != nil {
				err = closed
			}
		}
		if r.deaf {
			*r.held = (*r.held)[:0]
		}
		if err == nil {
			continue
		}
		if nothing, ok := errors.AsType[nothingYet](err); !ok || !nothing.NothingYet() {
			r.end(err)
			return
		}
		if len(*r.held) == 0 {
			r.put()
		}
		r.config.Running.GoNew(r.await)
		return
	}
}

// buffers is shared by all readers.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

// keptBuffer is the largest buffer that returns to the pool, so that a rare huge one does not occupy memory forever.
const keptBuffer = 64 << 10

func (r *Reader) put() {
	if r.held != nil && cap(*r.held) <= keptBuffer {
		*r.held = (*r.held)[:0]
		buffers.Put(r.held)
	}
	r.held = nil
}

// take handles the complete frames and keeps the rest, with room after it. After an error the connection has ended.
func (r *Reader) take() (*Closed, *Violation, error) {
	b := *r.held
	for {
		h, wrong := r.head(b)
		if wrong != nil {
			return nil, wrong, nil
		}
		if h.size == 0 || len(b) < h.size+h.payload {
			r.keep(b, h.size+h.payload)
			return nil, nil, nil
		}
		payload := b[h.size : h.size+h.payload : h.size+h.payload]
		b = b[h.size+h.payload:]
		unmask(payload, h.mask)
		if err := r.keepPace(len(payload)); err != nil {
			return nil, nil, err
		}
		if closed, wrong := r.frame(h.first, payload); closed != nil || wrong != nil {
			return closed, wrong, nil
		}
	}
}

// keep buffers a partial frame. Its room grows with the received data, not with the size announced by the frame's head.
func (r *Reader) keep(part []byte, size int) {
	whole := (*r.held)[:cap(*r.held)]
	*r.held = whole[:copy(whole, part)]
	if n := len(*r.held); n == cap(*r.held) {
		*r.held = append(make([]byte, 0, min(2*n, max(size, n+1))), *r.held...)
	}
}

// unmask removes the mask. RFC 6455, 5.3.
func unmask(b []byte, key [4]byte) {
	word := uint64(binary.LittleEndian.Uint32(key[:]))
	word |= word << 32
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^word)
	}
	for i := range b {
		b[i] ^= key[i%4]
	}
}

// frame handles one complete frame with a valid head.
func (r *Reader) frame(first byte, payload []byte) (*Closed, *Violation) {
	switch opcode := first & bitsOpcode; opcode {
	case Ping:
		r.handler.Ping(payload)
	case Pong:
		r.handler.Pong()
	case Close:
		return closed(payload)
	default:
		return nil, r.data(opcode, first&bitFIN != 0, payload)
	}
	return nil, nil
}

// data collects the fragments of a message.
func (r *Reader) data(opcode byte, last bool, payload []byte) *Violation {
	if opcode != opContinuation {
		r.opened = opcode
	}
	if r.whole != nil || !last {
		r.whole = append(r.whole, payload...)
		payload = r.whole
	}
	if !last {
		return nil
	}
	if r.opened == Text && !r.config.AnyText && !utf8.Valid(payload) {
		return &Violation{CodeNoText, "a text that is not UTF-8"}
	}
	r.whole, r.opened = nil, 0
	r.handler.Message(payload)
	return nil
}

func closed(payload []byte) (*Closed, *Violation) {
	switch len(payload) {
	case 0:
		return &Closed{}, nil
	case 1:
		return nil, &Violation{CodeProtocol, "a close frame with half a code"}
	}
	code, reason := binary.BigEndian.Uint16(payload), payload[2:]
	switch {
	case code < 1000 || code >= 5000 || code >= 1016 && code < 3000 || code >= 1004 && code <= 1006 || code == 1014 || code == 1015:
		return nil, &Violation{CodeProtocol, fmt.Sprintf("a close frame with the code %d", code)}
	case !utf8.Valid(reason):
		return nil, &Violation{CodeNoText, "a close frame with a reason that is not UTF-8"}
	}
	return &Closed{Code: code, Reason: string(reason)}, nil
}
