package frames_test

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/listen"
	"github.com/musterhq/muster/internal/listen/devca"
	"github.com/musterhq/muster/internal/warm"
)

// frame returns a client's frame. first has the opcode and the flags.
func frame(first byte, payload string) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n > 0xFFFF:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	case n > 125:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = append(b, 0x80|byte(n))
	}
	var key [4]byte
	_, _ = rand.Read(key[:])
	b = append(b, key[:]...)
	for i := range payload {
		b = append(b, payload[i]^key[i%4])
	}
	return b
}

const (
	text, binaryKind, more, ping, pong, goodbye = 0x81, 0x82, 0x80, 0x89, 0x8A, 0x88
	opens, goesOn                               = 0x01, 0x00
)

// notes is a handler that records its calls.
type notes struct {
	strings.Builder
	ended chan struct{}
}

func (n *notes) Ping(b []byte)             { fmt.Fprintf(n, "ping %s\n", b) }
func (n *notes) Pong()                     { fmt.Fprintln(n, "pong") }
func (n *notes) Message(b []byte)          { fmt.Fprintf(n, "%d %.40s\n", len(b), b) }
func (n *notes) Wrong(v *frames.Violation) { fmt.Fprintf(n, "wrong %d %s\n", v.Code, v.Text) }
func (n *notes) End(err error) {
	if closed, ok := errors.AsType[*frames.Closed](err); ok {
		fmt.Fprintf(n, "closed %d %s\n", closed.Code, closed.Reason)
	} else {
		fmt.Fprintln(n, "lost")
	}
	close(n.ended)
}

// pieces is a connection on which data arrives in pieces and then ends.
type pieces struct {
	net.Conn
	rest []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(p.size, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}

const most = 10_000

// heard returns the calls of a handler for bytes that arrive in pieces.
func heard(all []byte, size int) string {
	n := &notes{ended: make(chan struct{})}
	var running warm.Group
	frames.Read(&pieces{rest: bytes.Clone(all), size: size}, &frames.Config{MessageMax: most, Running: &running}, n)
	running.Wait()
	return n.String()
}

func TestFrames(t *testing.T) {
	long := strings.Repeat("x", most)
	for _, c := range []struct {
		name string
		sent []byte
		want string
	}{
		{"messages", slicesOf(frame(text, "one"), frame(binaryKind, ""), frame(text, strings.Repeat("y", 126)), frame(text, long)),
			"3 one\n0 \n126 " + strings.Repeat("y", 40) + "\n10000 " + long[:40] + "\nlost\n"},
		{"control frames", slicesOf(frame(ping, "p"), frame(pong, "q"), frame(ping, long[:125])), "ping p\npong\nping " + long[:125] + "\nlost\n"},
		{"a message in fragments, a ping within", slicesOf(frame(opens, "on"), frame(goesOn, ""), frame(ping, ""), frame(more, "e"), frame(text, "two")), "ping \n3 one\n3 two\nlost\n"},
		{"cut off", frame(text, "three")[:7], "lost\n"},
		{"close", slicesOf(frame(goodbye, "\x03\xE8bye"), frame(text, "late")), "closed 1000 bye\n"},
		{"close without a code", frame(goodbye, ""), "closed 0 \n"},
		{"close with half a code", frame(goodbye, "\x03"), "wrong 1002 a close frame with half a code\nlost\n"},
		{"close with a code that is never sent", frame(goodbye, "\x03\xEE"), "wrong 1002 a close frame with the code 1006\nlost\n"},
		{"no mask", []byte{text, 1, 'x'}, "wrong 1002 a frame without a mask\nlost\n"},
		{"an extension", frame(text|0x40, "x"), "wrong 1002 a frame of an extension that was not agreed on\nlost\n"},
		{"unknown opcode", frame(0x83, "x"), "wrong 1002 a frame with the opcode 3\nlost\n"},
		{"long ping", frame(ping, long[:126]), "wrong 1002 a control frame of more than 125 bytes\nlost\n"},
		{"ping in fragments", frame(0x09, "x"), "wrong 1002 a control frame in fragments\nlost\n"},
		{"fragment of nothing", frame(more, "x"), "wrong 1002 a fragment of no message, or a message within one\nlost\n"},
		{"message within one", slicesOf(frame(opens, "x"), frame(text, "y")), "wrong 1002 a fragment of no message, or a message within one\nlost\n"},
		{"too long", frame(text, long+"x"), "wrong 1009 a frame of 10001 bytes, want at most 10000\nlost\n"},
		{"far too long", []byte{text, 0x80 | 127, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3, 4}, "wrong 1009 a frame of 18446744073709551615 bytes, want at most 10000\nlost\n"},
		{"2^63 bytes, which no int holds", []byte{text, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, "wrong 1009 a frame of 9223372036854775808 bytes, want at most 10000\nlost\n"},
		{"2^31 bytes", []byte{text, 0xFF, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0}, "wrong 1009 a frame of 2147483648 bytes, want at most 10000\nlost\n"},
		{"2^63 bytes behind a fragment", slicesOf(frame(opens, "x"), []byte{goesOn, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), "wrong 1009 a frame of 9223372036854775808 bytes, want at most 10000\nlost\n"},
		{"a ping of 2^63 bytes", []byte{ping, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, "wrong 1002 a control frame of more than 125 bytes\nlost\n"},
		{"a length of 5 in 2 bytes", []byte{text, 0xFE, 0, 5, 0, 0, 0, 0, 'h', 'e', 'l', 'l', 'o'}, "wrong 1002 a length of 5 in a longer form than necessary\nlost\n"},
		{"a length of 126 in 8 bytes", []byte{text, 0xFF, 0, 0, 0, 0, 0, 0, 0, 126, 0, 0, 0, 0}, "wrong 1002 a length of 126 in a longer form than necessary\nlost\n"},
		{"a text that is not UTF-8", frame(text, "a\xFF"), "wrong 1007 a text that is not UTF-8\nlost\n"},
		{"a text in fragments that is not UTF-8", slicesOf(frame(opens, "a\xC3"), frame(more, "z")), "wrong 1007 a text that is not UTF-8\nlost\n"},
		{"a letter cut in two by fragments", slicesOf(frame(opens, "a\xC3"), frame(more, "\xBC")), "3 a\u00FC\nlost\n"},
		{"bytes that are not UTF-8, and no text", frame(binaryKind, "a\xFF"), "2 a\xFF\nlost\n"},
		{"close with a reason that is not UTF-8", frame(goodbye, "\x03\xE8\xFF"), "wrong 1007 a close frame with a reason that is not UTF-8\nlost\n"},
		{"the bad opcode of a frame of which one byte has come", []byte{0x83}, "wrong 1002 a frame with the opcode 3\nlost\n"},
		{"what comes behind something wrong", slicesOf(frame(0x8B, ""), frame(text, "late"), frame(goodbye, "")), "wrong 1002 a frame with the opcode 11\nlost\n"},
		{"too long in fragments", slicesOf(frame(opens, long), frame(more, "x")), "wrong 1009 a message of more than 10000 bytes\nlost\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1, 2, 7, 1000, 1 << 20} {
				if got := heard(c.sent, size); got != c.want {
					t.Errorf("in pieces of %d: got\n%swant\n%s", size, got, c.want)
				}
			}
		})
	}
}

func slicesOf(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// A client's bytes have the same meaning however they are divided into pieces.
func FuzzFrames(f *testing.F) {
	f.Add(slicesOf(frame(text, "one"), frame(opens, "on"), frame(ping, ""), frame(more, "e"), frame(goodbye, "\x03\xE8bye")), 3)
	f.Add([]byte{text, 0x80 | 126, 0x10, 0, 1, 2, 3, 4}, 1)
	f.Fuzz(func(t *testing.T, sent []byte, size int) {
		if got, want := heard(sent, max(size, 1)), heard(sent, len(sent)+1); got != want {
			t.Errorf("%x in pieces of %d: got\n%swant\n%s", sent, size, got, want)
		}
	})
}

// echo writes messages back.
type echo struct {
	conn  net.Conn
	ended chan error
}

func (echo) Ping([]byte)             {}
func (echo) Pong()                   {}
func (echo) Wrong(*frames.Violation) {}
func (e echo) Message(b []byte)      { _, _ = e.conn.Write(b) } // the reading side meets a lost connection
func (e echo) End(err error)         { e.ended <- err; _ = e.conn.Close() }

// Over the service's port, plain and over TLS, no bytes are lost or held back, whether they arrive one by one or all at once.
func TestOverThePort(t *testing.T) {
	ca, err := devca.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var running warm.Group
	ended := make(chan error, 1)
	s, err := listen.Open(listen.Config{Addr: "127.0.0.1:0", Certificate: ca.Certificate, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, "!")
		frames.Read(c, &frames.Config{MessageMax: most, Running: &running}, echo{c, ended})
	})})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	defer func() {
		if err := errors.Join(s.Stop(t.Context()), <-served); err != nil {
			t.Error(err)
		}
		running.Wait()
	}()
	secure := func(version uint16) func(net.Conn) net.Conn {
		return func(c net.Conn) net.Conn {
			return tls.Client(c, &tls.Config{RootCAs: ca.Pool(), ServerName: "127.0.0.1", MinVersion: version, MaxVersion: version})
		}
	}
	for name, over := range map[string]func(net.Conn) net.Conn{
		"plain": func(c net.Conn) net.Conn { return c }, "TLS 1.2": secure(tls.VersionTLS12), "TLS 1.3": secure(tls.VersionTLS13),
	} {
		t.Run(name, func(t *testing.T) {
			tcp, err := net.Dial("tcp", s.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer tcp.Close()
			out := &outgoing{Conn: tcp}
			out.write = out.atOnce
			c := over(out)
			expect := func(want string) {
				t.Helper()
				got := make([]byte, len(want))
				if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
					t.Fatalf("got %.60q, %v, want %.60q", got, err, want)
				}
			}
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			expect("!")
			long, cutOff := strings.Repeat("long ", most/5), frame(text, "three")
			for _, step := range []struct {
				write func([]byte) error // of the bytes that the connection sends
				sent  [][]byte
				want  string
			}{
				{out.atOnce, [][]byte{frame(text, "one")}, "one"},
				{out.atOnce, [][]byte{slicesOf(frame(text, long), frame(text, "two"), frame(text, long))}, long + "two" + long},
				{out.atOnce, [][]byte{cutOff[:3]}, ""},
				{out.atOnce, [][]byte{cutOff[3:]}, "three"},
				{out.byByte, [][]byte{frame(pong, ""), frame(text, "four")}, "four"},
				{out.later, [][]byte{frame(text, "five"), frame(text, long), frame(pong, ""), frame(text, "six")}, ""},
				{out.atOnce, [][]byte{frame(text, "seven")}, "five" + long + "six" + "seven"},
			} {
				out.write = step.write
				for _, sent := range step.sent {
					if _, err := c.Write(sent); err != nil {
						t.Fatal(err)
					}
				}
				expect(step.want)
			}
			_ = c.Close()
			if err := <-ended; err == nil {
				t.Error("ended without a reason")
			}
		})
	}
}

// outgoing is a connection that determines how written bytes are sent.
type outgoing struct {
	net.Conn
	write func([]byte) error
	held  []byte
}

func (o *outgoing) Write(b []byte) (n int, err error) { return len(b), o.write(b) }

func (o *outgoing) atOnce(b []byte) error {
	_, err := o.Conn.Write(append(o.held, b...))
	o.held = nil
	return err
}

func (o *outgoing) byByte(b []byte) error {
	for i := range b {
		if _, err := o.Conn.Write(b[i : i+1]); err != nil {
			return err
		}
	}
	return nil
}

// later keeps the bytes for the next write.
func (o *outgoing) later(b []byte) error {
	o.held = append(o.held, b...)
	return nil
}
