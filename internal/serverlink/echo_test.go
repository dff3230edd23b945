package serverlink

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/listen"
)

// BenchmarkEcho measures the cost of the connections alone, without a core: a request and its answer, one at a time, and
// many at once.
func BenchmarkEcho(b *testing.B) {
	port, err := listen.Open(listen.Config{Addr: "127.0.0.1:0", Handler: Echo(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- port.Serve() }()
	b.Cleanup(func() {
		_ = port.Stop(b.Context())
		<-served
	})
	for _, size := range []int{50, 300, 3000} {
		head := `{"Action":"HeartbeatServerProcess","RequestId":"r"`
		text := head + strings.Repeat(" ", max(0, size-len(head)-1)) + "}"
		for _, atOnce := range []int{1, 32} {
			b.Run(fmt.Sprintf("%dBytes/%dAtOnce", size, atOnce), func(b *testing.B) {
				b.ReportAllocs()
				conn, answer := dialEcho(b, port.Addr().String(), maskedText(text))
				batch := []byte(strings.Repeat(string(maskedText(text)), atOnce))
				answers := make([]byte, atOnce*answer)
				for b.Loop() {
					go func() { _, _ = conn.Write(batch) }()
					if _, err := io.ReadFull(conn, answers); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// dialEcho opens a link and returns the size of the answer to a frame.
func dialEcho(b *testing.B, address string, frame []byte) (net.Conn, int) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	head := make([]byte, 0, 1024)
	for !strings.HasSuffix(string(head), "\r\n\r\n") {
		var one [1]byte
		if _, err := io.ReadFull(conn, one[:]); err != nil {
			b.Fatal(err)
		}
		head = append(head, one[0])
	}
	_, _ = conn.Write(frame)
	answer := make([]byte, 1024)
	n, err := conn.Read(answer)
	if err != nil {
		b.Fatal(err)
	}
	return conn, n
}

// maskedText returns a text frame of a client, with a mask of zeros.
func maskedText(text string) []byte {
	b := []byte{0x80 | frames.Text}
	if n := len(text); n > 125 {
		b = append(b, 0x80|126, byte(n>>8), byte(n))
	} else {
		b = append(b, 0x80|byte(n))
	}
	return append(append(b, 0, 0, 0, 0), text...)
}
