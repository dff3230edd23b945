// Package framestest has clients of WebSocket doors for tests: a hostile one for fuzz tests, which sends any bytes and judges what comes
// back, and one that only listens.
package framestest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// patience bounds an exchange. It is only for hanging tests to end.
const patience = time.Minute

// impatience is how long an answer to a request is waited for before the stranger says that no more of it will come.
const impatience = 100 * time.Millisecond

// Head is a good request for a WebSocket but for its last line. More headers are lines that end with \r\n.
func Head(target, more string) string {
	return "GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" + more
}

// Exchange sends the head of a request and, once it was upgraded, some bytes and no more. The service must answer with HTTP, send
// whole frames of its own, nothing behind a close frame, and end the connection; an error says where it did not. The status is 0 when
// there was no answer.
func Exchange(address, head string, sent []byte) (status int, err error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return 0, fmt.Errorf("the service is gone: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	_, _ = io.WriteString(conn, head+"\r\n") // it may have been refused before its end
	if !isWhole(head) {
		defer time.AfterFunc(impatience, func() { _ = conn.(*net.TCPConn).CloseWrite() }).Stop()
	}
	br := bufio.NewReader(conn)
	answer, err := http.ReadResponse(br, nil)
	if err != nil {
		return 0, unlessTimeout(err)
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		return answer.StatusCode, nil
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = conn.Write(sent) // the service may have ended the connection before
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	err = frames(br)
	_ = conn.Close()
	<-written
	return answer.StatusCode, err
}

// isWhole reports whether a request is complete with its head. The service waits for the rest of others until a time limit, or the end of the bytes. That end cancels
// a request that is being answered, so one that is complete must not send it, however long its answer takes.
func isWhole(head string) bool {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head + "\r\n")))
	return err == nil && r.ContentLength == 0
}

// unlessTimeout passes over connections that were closed, but not over those that were left open.
func unlessTimeout(err error) error {
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return fmt.Errorf("the connection was left open: %w", err)
	}
	return nil
}

// frames reads the service's frames until the end of the connection.
func frames(br *bufio.Reader) error {
	closed := false
	for {
		var head [10]byte
		if _, err := io.ReadFull(br, head[:2]); err != nil {
			return unlessTimeout(err)
		}
		if closed {
			return fmt.Errorf("the service sent %x behind its close frame", head[:2])
		}
		opcode, n := head[0]&0x0F, uint64(head[1])
		switch n {
		case 126:
			_, _ = io.ReadFull(br, head[2:4])
			n = uint64(binary.BigEndian.Uint16(head[2:]))
		case 127:
			_, _ = io.ReadFull(br, head[2:])
			n = binary.BigEndian.Uint64(head[2:])
		}
		if head[0]&0xF0 != 0x80 || head[1]&0x80 != 0 || n > 64<<20 || opcode >= 8 && n > 125 {
			return fmt.Errorf("the service sent a frame with the head %x", head)
		}
		if _, err := io.CopyN(io.Discard, br, int64(n)); err != nil {
			return unlessTimeout(err)
		}
		closed = opcode == 8
	}
}

// Frames are some for a fuzz test to begin with.
func Frames(texts ...string) (all [][]byte) {
	mask := string([]byte{0, 0, 0, 0})
	for _, text := range append(texts, "", "{}", "\xFF") {
		all = append(all, []byte("\x81"+string([]byte{0x80 | byte(len(text))})+mask+text))
	}
	for _, frame := range []string{
		"\x81\xFF\x80\x00\x00\x00\x00\x00\x00\x00" + mask, "\x89\x80" + mask, "\x8A\x81" + mask + "x", "\x88\x82" + mask + "\x03\xE8",
		"\x01\x81" + mask + "x\x80\x81" + mask + "y", "\x80\x80" + mask, "\x81\xFE\x00\x01" + mask + "x", "\x83\x80" + mask, "\xC1\x80" + mask, "\x81\x01x",
	} {
		all = append(all, []byte(frame))
	}
	return all
}
