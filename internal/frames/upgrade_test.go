package frames_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/frames/framestest"
)

// taken is a ResponseWriter whose connection can be taken over.
type taken struct {
	header http.Header
	status int
	conn   net.Conn
	rest   *bufio.Reader
}

func (x *taken) Header() http.Header         { return x.header }
func (x *taken) WriteHeader(status int)      { x.status = status }
func (x *taken) Write(b []byte) (int, error) { return len(b), nil }
func (x *taken) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return x.conn, bufio.NewReadWriter(x.rest, bufio.NewWriter(x.conn)), nil
}

// upgrade serves the bytes of a request. It returns the status, and the answer if the connection was taken over.
func upgrade(t *testing.T, request []byte, subprotocol string) (status int, answer *http.Response, err error) {
	rest := bufio.NewReader(bytes.NewReader(request))
	r, readErr := http.ReadRequest(rest)
	if readErr != nil {
		return http.StatusBadRequest, nil, readErr // what net/http says to it
	}
	ours, theirs := net.Pipe()
	defer theirs.Close()
	w := &taken{header: http.Header{}, conn: ours, rest: rest}
	got := make(chan *http.Response, 1)
	go func() {
		_ = theirs.SetDeadline(time.Now().Add(time.Minute))
		answer, _ := http.ReadResponse(bufio.NewReader(theirs), nil)
		got <- answer
		_, _ = io.Copy(io.Discard, theirs) // or the rest of an answer that cannot be read would wait
	}()
	conn, err := frames.Upgrade(w, r, subprotocol)
	if (conn == nil) == (err == nil) {
		t.Errorf("%q: a connection %v and the error %v", request, conn, err)
	}
	if wrong := frames.CheckUpgrade(r, subprotocol); wrong != nil && err == nil {
		t.Errorf("%q was upgraded although %v", request, wrong)
	}
	_ = ours.Close()
	answer = <-got
	if err == nil && answer == nil {
		t.Errorf("%q was upgraded without an answer", request)
	}
	return w.status, answer, err
}

func TestUpgrade(t *testing.T) {
	good := framestest.Head("/", "Sec-WebSocket-Protocol: a, b\r\nSec-WebSocket-Protocol: c\r\n") + "\r\n"
	for _, c := range []struct {
		name, request, subprotocol string
		status                     int // 0: upgraded
	}{
		{"good", good, "", 0},
		{"with a subprotocol", good, "c", 0},
		{"with one that is not offered", good, "d", 400},
		{"more values in a header", strings.Replace(good, "Connection: Upgrade", "Connection: keep-alive, uPGRADE", 1), "", 0},
		{"another method", strings.Replace(good, "GET", "POST", 1), "", 400},
		{"HTTP/1.0", strings.Replace(good, "HTTP/1.1", "HTTP/1.0", 1), "", 400},
		{"a part of a word", strings.Replace(good, "Connection: Upgrade", "Connection: Upgraded", 1), "", 400},
		{"another protocol", strings.Replace(good, "websocket", "h2c", 1), "", 400},
		{"version 12", strings.Replace(good, "13", "12", 1), "", 426},
		{"a long key", strings.Replace(good, "ZQ==", "ZQ==AAAA", 1), "", 400},
		{"a key with a line of its own", strings.Replace(good, "dGhl", "dG\thl", 1), "", 400},
		{"a body", strings.Replace(good, "\r\n\r\n", "\r\nContent-Length: 1\r\n\r\nx", 1), "", 400},
		{"a chunked body", strings.Replace(good, "\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 1), "", 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, answer, err := upgrade(t, []byte(c.request), c.subprotocol)
			if status != c.status || (err == nil) != (c.status == 0) {
				t.Errorf("got %d, %v, want %d", status, err, c.status)
			}
			if c.status != 0 {
				return
			}
			h := answer.Header // the example of RFC 6455, 1.3
			if answer.StatusCode != 101 || h.Get("Sec-Websocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" || h.Get("Sec-Websocket-Protocol") != c.subprotocol {
				t.Errorf("answered with %d %v", answer.StatusCode, h)
			}
		})
	}
	if _, answer, err := upgrade(t, []byte(good+"early"), ""); err == nil || answer != nil {
		t.Errorf("a frame before the handshake was over: %v, answered %v", err, answer)
	}
}

// Only requests for a WebSocket are upgraded, for any bytes.
func FuzzUpgrade(f *testing.F) {
	f.Add([]byte(framestest.Head("/?a=b", "Sec-WebSocket-Protocol: a\r\n")+"\r\n"), "a")
	f.Add([]byte(framestest.Head("*", "Content-Length: 0\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=-1\r\n")+"\r\n"), "")
	f.Fuzz(func(t *testing.T, request []byte, subprotocol string) {
		if strings.ContainsAny(subprotocol, "\r\n") {
			return // it is the service's own
		}
		_, answer, err := upgrade(t, request, subprotocol)
		if err == nil && answer != nil && answer.StatusCode != 101 {
			t.Errorf("%q was upgraded with %d", request, answer.StatusCode)
		}
	})
}
