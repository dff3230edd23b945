// Package frames is for reading what WebSocket clients send, from thousands of connections that are silent most of the time.
//
// What waits for a silent client is a goroutine that has called next to nothing, so it keeps the stack it began with; the
// goroutine that reads, and does what was asked for, ends when nothing more has come. A reader that waits where it reads
// costs an idle connection over TLS about twice as much.
package frames

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
)

// Handler is told what a client sends: in order, one call at a time. What it is given is good until it returns.
type Handler interface {
	Ping(payload []byte)
	Pong()
	Message(data []byte)
	Wrong(v *Violation) // whatever comes after it is read, so that no reset overtakes the close frame, and not told
	End(err error)      // the last call: *Closed, or why the connection was lost. Nobody has closed it.
}

// Closed is a client's close frame. Code is 0 when it named none.
type Closed struct {
	Code   uint16
	Reason string
}

func (e *Closed) Error() string {
	return fmt.Sprintf("closed by its client with %d %.125q", e.Code, e.Reason)
}

// Violation is what no client may send. Code says so in a close frame.
type Violation struct {
	Code uint16
	Text string
}

// Close codes of RFC 6455, 7.4.1.
const (
	CodeProtocol = 1002
	CodeTooLarge = 1009
)

// patient is a connection that can wait for its peer apart from reading. Once it is ReadNoWait, its Read does not wait for
// something to begin: its error says NothingYet, and Await waits until something has come.
type patient interface {
	ReadNoWait()
	Await() error
}

type nothingYet interface {
	error
	NothingYet() bool
}

// Reader reads one connection. It holds nothing while the client is silent.
type Reader struct {
	conn    net.Conn
	waits   patient // nil: conn waits where it reads
	handler Handler
	running *sync.WaitGroup
	most    int // bytes of a message

	held   *[]byte // a frame of which not all has come
	whole  []byte  // what has come of a message in fragments
	opened bool    // there is such a message
	deaf   bool    // something wrong has come
}

// Read reads from a connection until it ends. The goroutines of it are counted by running. A message is of at most so many bytes.
func Read(conn net.Conn, most int, h Handler, running *sync.WaitGroup) {
	r := &Reader{conn: conn, handler: h, running: running, most: most}
	under := conn
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		under = t.NetConn()
	}
	if w, ok := under.(patient); ok {
		w.ReadNoWait()
		r.waits = w
	}
	running.Go(r.read)
}

// await is all that a silent client costs.
func (r *Reader) await() {
	if err := r.waits.Await(); err != nil {
		r.end(err)
		return
	}
	r.running.Go(r.read)
}

func (r *Reader) end(err error) {
	r.put()
	r.handler.End(err)
}

// read takes all that has come.
func (r *Reader) read() {
	if r.held == nil {
		r.held = buffers.Get().(*[]byte)
	}
	for {
		b := *r.held
		n, err := r.conn.Read(b[len(b):cap(b)])
		*r.held = b[:len(b)+n]
		if n > 0 {
			closed, wrong := r.take()
			if wrong != nil {
				r.deaf = true
				r.handler.Wrong(wrong)
			}
			if closed != nil {
				err = closed
			}
			if r.deaf {
				*r.held = (*r.held)[:0]
			}
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
		r.running.Go(r.await)
		return
	}
}

// buffers are shared by all readers.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

// keptBuffer is the largest one that goes back: a rare huge one must not be held for ever.
const keptBuffer = 64 << 10

func (r *Reader) put() {
	if r.held != nil && cap(*r.held) <= keptBuffer {
		*r.held = (*r.held)[:0]
		buffers.Put(r.held)
	}
	r.held = nil
}

// take handles the frames that are whole, and keeps the rest. There is room behind it.
func (r *Reader) take() (*Closed, *Violation) {
	b := *r.held
	for !r.deaf {
		size, payload, rest, wrong := cut(b, r.most)
		switch {
		case wrong != nil:
			return nil, wrong
		case rest != nil:
			if closed, wrong := r.frame(b[0], payload); closed != nil || wrong != nil {
				return closed, wrong
			}
			b = rest
			continue
		case cap(*r.held) >= size:
			*r.held = (*r.held)[:copy((*r.held)[:cap(*r.held)], b)]
		default:
			*r.held = append(make([]byte, 0, size), b...)
		}
		return nil, nil
	}
	return nil, nil
}

// Opcodes of RFC 6455, 5.2.
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xA

	bitFIN, bitsRSV, bitMask = 0x80, 0x70, 0x80

	controlMost = 125
)

// cut splits the first frame off and takes its mask away. When it is not whole, rest is nil and size what it will have as far
// as that is known.
func cut(b []byte, most int) (size int, payload, rest []byte, wrong *Violation) {
	const shortHead = 2 + 4
	if len(b) < 2 {
		return shortHead, nil, nil, nil
	}
	if b[1]&bitMask == 0 {
		return 0, nil, nil, &Violation{CodeProtocol, "a frame without a mask"}
	}
	head, n := shortHead, uint64(b[1]&^bitMask)
	switch n {
	case 126:
		head += 2
	case 127:
		head += 8
	}
	if len(b) < head {
		return head, nil, nil, nil
	}
	switch n {
	case 126:
		n = uint64(binary.BigEndian.Uint16(b[2:]))
	case 127:
		n = binary.BigEndian.Uint64(b[2:])
	}
	if n > uint64(most) && n > controlMost {
		return 0, nil, nil, &Violation{CodeTooLarge, fmt.Sprintf("a frame of %d bytes, want at most %d", n, most)}
	}
	size = head + int(n)
	if len(b) < size {
		return size, nil, nil, nil
	}
	payload = b[head:size:size]
	unmask(payload, [4]byte(b[head-4:head]))
	return size, payload, b[size:], nil
}

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

// frame handles one whole frame.
func (r *Reader) frame(first byte, payload []byte) (*Closed, *Violation) {
	last, opcode := first&bitFIN != 0, first&0x0F
	switch {
	case first&bitsRSV != 0:
		return nil, &Violation{CodeProtocol, "a frame of an extension that was not agreed on"}
	case opcode >= opClose && (!last || len(payload) > controlMost):
		return nil, &Violation{CodeProtocol, "a control frame in fragments, or of more than 125 bytes"}
	}
	switch opcode {
	case opPing:
		r.handler.Ping(payload)
	case opPong:
		r.handler.Pong()
	case opClose:
		return closed(payload)
	case opText, opBinary, opContinuation:
		return nil, r.data(opcode == opContinuation, last, payload)
	default:
		return nil, &Violation{CodeProtocol, fmt.Sprintf("a frame with the opcode %d", opcode)}
	}
	return nil, nil
}

// data gathers fragments.
func (r *Reader) data(goesOn, last bool, payload []byte) *Violation {
	switch {
	case goesOn != r.opened:
		return &Violation{CodeProtocol, "a fragment of no message, or a message within one"}
	case len(r.whole)+len(payload) > r.most:
		return &Violation{CodeTooLarge, fmt.Sprintf("a message of more than %d bytes", r.most)}
	case !goesOn && last:
		r.handler.Message(payload)
		return nil
	}
	r.whole, r.opened = append(r.whole, payload...), !last
	if last {
		r.handler.Message(r.whole)
		r.whole = nil
	}
	return nil
}

func closed(payload []byte) (*Closed, *Violation) {
	switch len(payload) {
	case 0:
		return &Closed{}, nil
	case 1:
		return nil, &Violation{CodeProtocol, "a close frame with half a code"}
	}
	code := binary.BigEndian.Uint16(payload)
	if code < 1000 || code >= 5000 || code >= 1016 && code < 3000 || code >= 1004 && code <= 1006 || code == 1014 || code == 1015 {
		return nil, &Violation{CodeProtocol, fmt.Sprintf("a close frame with the code %d", code)}
	}
	return &Closed{Code: code, Reason: string(payload[2:])}, nil
}
