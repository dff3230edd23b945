package serverlink

import (
	"net"
	"net/http"

	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/warm"
)

// Echo returns a door without a core: it accepts every game server and answers every request with 200. `muster bench`
// uses it to measure the cost of the connections alone.
func Echo() http.Handler {
	reading := &frames.Config{MessageMax: messageMax, Running: new(warm.Group)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, err := frames.Upgrade(w, r, ""); err == nil {
			frames.Read(conn, reading, echo{conn})
		}
	})
}

type echo struct{ conn net.Conn }

func (x echo) Ping(payload []byte) {
	b := newFrame()
	*b = append(*b, payload...)
	x.write(b, frames.Pong)
}

func (echo) Pong()                     {}
func (x echo) Wrong(*frames.Violation) { _ = x.conn.Close() }
func (x echo) End(error)               { _ = x.conn.Close() }

func (x echo) Message(data []byte) {
	if r, ok := readRequest(data); ok {
		b := newFrame()
		*b = appendOK(*b, r)
		r.free()
		x.write(b, frames.Text)
	}
}

func (x echo) write(b *[]byte, opcode byte) {
	_, _ = x.conn.Write(seal(*b, opcode)) // the reading side notices a lost connection
	putFrame(b)
}
