package exchange

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	messageMax = 32 << 20
	headBytes  = 4 + 8 + 1
	bodyMax    = messageMax - headBytes
	writeWait  = 5 * time.Second
)

// message is a question or an answer.
type message struct {
	no   uint64 // of the question
	kind byte   // of the question, or the outcome
	body []byte
}

// writer writes the messages of several goroutines to a connection.
type writer struct {
	conn    net.Conn
	waiting atomic.Int32 // messages about to be written

	lock sync.Mutex
	to   *bufio.Writer
	err  error
}

func newWriter(conn net.Conn) *writer {
	return &writer{conn: conn, to: bufio.NewWriterSize(conn, 64<<10)}
}

// write writes a message, and flushes unless another one follows at once.
func (w *writer) write(m message) error {
	if len(m.body) > bodyMax {
		return fmt.Errorf("message of %d bytes, at most %d allowed", len(m.body), bodyMax)
	}
	w.waiting.Add(1)
	w.lock.Lock()
	defer w.lock.Unlock()
	last := w.waiting.Add(-1) == 0
	if w.err != nil {
		return w.err
	}
	var head [headBytes]byte
	binary.BigEndian.PutUint32(head[:], uint32(8+1+len(m.body)))
	binary.BigEndian.PutUint64(head[4:], m.no)
	head[12] = m.kind
	err := w.conn.SetWriteDeadline(time.Now().Add(writeWait))
	for _, b := range [][]byte{head[:], m.body} {
		if err == nil {
			_, err = w.to.Write(b)
		}
	}
	if err == nil && last {
		err = w.to.Flush()
	}
	if err != nil { // part of a message may have been sent
		w.err = err
		_ = w.conn.Close()
	}
	return err
}

var errMessage = errors.New("not a message of this protocol")

// read reads a message. io.EOF means that the peer closed the connection between two messages.
func read(from *bufio.Reader) (m message, err error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return m, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size < 8+1 || size > messageMax-4 {
		return m, fmt.Errorf("%w: its length is %d", errMessage, size)
	}
	m.no, m.kind = binary.BigEndian.Uint64(head[4:]), head[12]
	m.body, err = readBody(from, int(size)-8-1)
	return m, err
}

// readBody allocates memory as the bytes arrive, so that an announced length alone takes none.
func readBody(from io.Reader, size int) ([]byte, error) {
	const step = 1 << 20
	body := make([]byte, 0, min(size, step))
	for len(body) < size {
		n := min(size-len(body), step)
		at := len(body)
		body = append(body, make([]byte, n)...)
		if _, err := io.ReadFull(from, body[at:]); err != nil {
			return nil, errors.Join(err, io.ErrUnexpectedEOF)
		}
	}
	return body, nil
}
