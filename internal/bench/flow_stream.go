package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// eventStream is the client's side of an event stream: the minimum for receiving all events and answering heartbeats.
type eventStream struct {
	conn net.Conn
	in   *bufio.Reader
	buf  []byte
}

// greeting is the first frame of a stream.
type greeting struct {
	HeadSeq uint64 `json:"head_seq"`
	Resume  string `json:"resume"`
}

const (
	frameText  = 0x1
	frameClose = 0x8
	framePing  = 0x9

	attachWait = 30 * time.Second
)

// pong answers a heartbeat: a masked frame without content, with a mask of zeros.
var pong = []byte{0x8A, 0x80, 0, 0, 0, 0}

// openStream attaches a client after its last received event.
func openStream(ctx context.Context, addr string, secure bool, token string, after uint64) (_ *eventStream, hello greeting, err error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, hello, err
	}
	defer func() {
		if err != nil {
			_ = conn.Close()
		}
	}()
	if err := conn.SetDeadline(time.Now().Add(attachWait)); err != nil {
		return nil, hello, err
	}
	if secure {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // the load has no secrets
	}
	if _, err := fmt.Fprintf(conn, "GET %splayer/stream?after_seq=%d HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: playerflow.v1\r\n\r\n", flowPath, after, addr, token); err != nil {
		return nil, hello, err
	}
	x := &eventStream{conn: conn, in: bufio.NewReaderSize(conn, 512)}
	answer, err := http.ReadResponse(x.in, nil)
	if err != nil {
		return nil, hello, fmt.Errorf("answer to an upgrade: %w", err)
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		return nil, hello, fmt.Errorf("answer to an upgrade: HTTP %d, want 101", answer.StatusCode)
	}
	first, err := x.read()
	if err == nil {
		err = json.Unmarshal(first, &hello)
	}
	if err != nil {
		return nil, hello, fmt.Errorf("first frame of a stream: %w", err)
	}
	return x, hello, conn.SetDeadline(time.Time{})
}

// read returns the next text, which is valid until the next call. It answers heartbeats.
func (x *eventStream) read() ([]byte, error) {
	for {
		opcode, err := x.frame()
		switch {
		case err != nil:
			return nil, err
		case opcode == frameText:
			return x.buf, nil
		case opcode == framePing:
			if _, err := x.conn.Write(pong); err != nil {
				return nil, err
			}
		case opcode == frameClose && len(x.buf) >= 2:
			return nil, &closedStream{binary.BigEndian.Uint16(x.buf), string(x.buf[2:])}
		case opcode == frameClose:
			return nil, io.EOF
		}
	}
}

// closedStream is a close frame of the service.
type closedStream struct {
	code uint16
	text string
}

func (e *closedStream) Error() string { return fmt.Sprintf("stream closed with %d %s", e.code, e.text) }

// frame reads one frame into buf.
func (x *eventStream) frame() (opcode byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(x.in, head[:2]); err != nil {
		return 0, err
	}
	opcode = head[0] & 0x0F
	n := uint64(head[1])
	switch n {
	case 126:
		_, err = io.ReadFull(x.in, head[:2])
		n = uint64(binary.BigEndian.Uint16(head[:2]))
	case 127:
		_, err = io.ReadFull(x.in, head[:])
		n = binary.BigEndian.Uint64(head[:])
	}
	switch {
	case err != nil:
		return 0, err
	case n > 1<<20:
		return 0, fmt.Errorf("frame of %d bytes, want at most 1 MiB", n)
	}
	if uint64(cap(x.buf)) < n {
		x.buf = make([]byte, n, max(n, 512))
	}
	x.buf = x.buf[:n]
	_, err = io.ReadFull(x.in, x.buf)
	return opcode, err
}

func (x *eventStream) close() { _ = x.conn.Close() }

var (
	seqHead   = []byte(`{"seq":`)
	stampHead = []byte(`"ts":"`)
	syncKind  = []byte(`"type":"OnSync"`)
	beatText  = []byte(`{"type":"ping"}`)
)

var errNoStamp = errors.New("an event has no ts")

// eventHead parses number and time of an event; seq 0: the text is not an event.
func eventHead(text []byte) (seq uint64, at time.Time, err error) {
	rest, ok := bytes.CutPrefix(text, seqHead)
	if !ok {
		return 0, at, nil
	}
	seq = leadingNumber(rest)
	_, rest, ok = bytes.Cut(rest, stampHead)
	if !ok {
		return seq, at, errNoStamp
	}
	stamp, _, _ := bytes.Cut(rest, []byte{'"'})
	at, err = time.Parse(time.RFC3339, string(stamp))
	return seq, at, err
}
