package frames_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/warm"
)

// counter is a handler that counts.
type counter struct{ pings, messages int }

func (c *counter) Ping([]byte)             { c.pings++ }
func (*counter) Pong()                     {}
func (c *counter) Message([]byte)          { c.messages++ }
func (*counter) Wrong(*frames.Violation)   {}
func (*counter) End(error)                 {}
func (*panicking) Ping([]byte)             {}
func (*panicking) Pong()                   {}
func (*panicking) Message(b []byte)        { _ = b[len(b)] }
func (*panicking) Wrong(*frames.Violation) {}

// panicking is a handler with a defect.
type panicking struct{ ended error }

func (p *panicking) End(err error) { p.ended = err }

// A flood is read only at the configured pace.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		name string
		sent []byte
		want time.Duration
	}{
		{"a burst", bytes.Repeat(frame(ping, ""), 100), 0},
		{"pings behind the burst", bytes.Repeat(frame(ping, ""), 600), 10 * time.Second},
		{"fragments of nothing", append(frame(opens, ""), bytes.Repeat(frame(goesOn, ""), 599)...), 10 * time.Second},
		{"large messages", bytes.Repeat(frame(text, strings.Repeat("x", 9<<10)), 60), 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var running warm.Group
				began := time.Now()
				frames.Read(&pieces{rest: c.sent, size: 4096}, &frames.Config{MessageMax: most, Running: &running, Pace: rate.PerSecond(50, 100)}, &counter{})
				running.Wait()
				if got := time.Since(began).Round(time.Second); got != c.want {
					t.Errorf("taken in %s, want %s", got, c.want)
				}
			})
		})
	}
}

// flooding is a connection on which everything has arrived, and which the service may end.
type flooding struct {
	pieces
	ended error
}

func (*flooding) ReadNoWait()    {}
func (*flooding) Await() error   { return io.EOF }
func (f *flooding) Ended() error { return f.ended }

// ender is a handler that ends the connection at a ping.
type ender struct {
	counter
	conn *flooding
	at   int
	end  error
}

func (e *ender) Ping(b []byte) {
	if e.counter.Ping(b); e.pings == e.at {
		e.conn.ended = net.ErrClosed
	}
}

func (e *ender) End(err error) { e.end = err }

// A flood that has arrived before the service ends its connection is not read to its end, which could delay the end of the service by minutes.
func TestPaceOfAnEndedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running warm.Group
		conn := &flooding{pieces: pieces{rest: bytes.Repeat(frame(ping, ""), 600), size: 4096}}
		h := &ender{conn: conn, at: 150}
		frames.Read(conn, &frames.Config{MessageMax: most, Running: &running, Pace: rate.PerSecond(50, 100)}, h)
		running.Wait()
		if h.pings != h.at || !errors.Is(h.end, net.ErrClosed) {
			t.Errorf("%d pings were handled, and the end was %v; want %d and %v", h.pings, h.end, h.at, net.ErrClosed)
		}
	})
}

// promises is a connection on which the header of a huge frame arrives, and then nothing until it is closed.
type promises struct {
	net.Conn
	rest  []byte
	taken *sync.WaitGroup // by the reader, all that comes
	end   chan struct{}
}

func (p *promises) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		p.taken.Done()
		<-p.end
		return 0, io.EOF
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// The header of a frame reserves no memory: only bytes that a client has sent take memory.
func TestPromisesTakeNoRoom(t *testing.T) {
	const clients, size = 100, 8 << 20
	var running warm.Group
	var taken sync.WaitGroup
	config := &frames.Config{MessageMax: size, Running: &running}
	taken.Add(clients)
	end := make(chan struct{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range clients {
		frames.Read(&promises{rest: []byte{text, 0xFF, 0, 0, 0, 0, 0, 0x80, 0, 0, 1, 2, 3, 4, 'x'}, taken: &taken, end: end}, config, &counter{})
	}
	taken.Wait()
	runtime.ReadMemStats(&after)
	close(end)
	running.Wait()
	if got := int64(after.TotalAlloc - before.TotalAlloc); got > clients*64<<10 {
		t.Errorf("%d heads of frames of 8 MiB took %d bytes, want a few KiB each", clients, got)
	}
}

// closable is a connection that records that it was closed.
type closable struct {
	pieces
	closed bool
}

func (c *closable) Close() error { c.closed = true; return nil }

func TestPanicEndsTheConnection(t *testing.T) {
	var running warm.Group
	conn, handler := &closable{pieces: pieces{rest: frame(text, "x"), size: 100}}, &panicking{}
	frames.Read(conn, &frames.Config{MessageMax: most, Running: &running, Panics: panics.New(slog.New(slog.DiscardHandler)), Door: "test"}, handler)
	running.Wait()
	if handler.ended == nil || errors.Is(handler.ended, io.EOF) || !conn.closed {
		t.Errorf("after a panic: ended with %v, closed %v; want the panic, and closed", handler.ended, conn.closed)
	}
}
