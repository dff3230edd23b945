package serverlink

import (
	"errors"

	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/steady"
)

// panicDoor is the label of panics of this door.
const panicDoor = "serverlink"

// errPanicked is the reason for the end of a connection that could not be opened.
var errPanicked = errors.New("a panic while the connection was opened")

// closeNormal is the close code after which a game server does not reconnect. docs/spec/server-sdk.md#reconnection.
const closeNormal = 1000

// incoming handles a game server's frames.
type incoming struct{ link *link }

// Ping answers at once, because C# waits up to 5 s for a pong before each of its requests.
func (x incoming) Ping(payload []byte) {
	x.Pong()
	b := newFrame()
	*b = append(*b, payload...)
	x.link.post(b, frames.Pong)
}

// Pong records a sign of life.
func (x incoming) Pong() { x.link.heard.Store(steady.Nanos(x.link.process.server.now())) }

// Message accepts a request.
func (x incoming) Message(data []byte) {
	l := x.link
	now := l.process.server.now()
	l.heard.Store(steady.Nanos(now))
	r, ok := readRequest(data)
	if !ok {
		l.process.server.counters.garbage.Add(1)
		return
	}
	if !l.receive(r, now) {
		r.free()
	}
}

// Wrong closes the connection of a game server that violates the WebSocket protocol. The server may reconnect.
func (x incoming) Wrong(v *frames.Violation) {
	s := x.link.process.server
	s.counters.garbage.Add(1)
	s.log.Debug("a game server violated the WebSocket protocol", "process", x.link.process.key, "code", v.Code, "detail", v.Text)
	x.link.dismiss(v.Code)
}

// End cleans up after a connection. A client's close frame is answered; a lost connection is not.
func (x incoming) End(err error) {
	if closed, ok := errors.AsType[*frames.Closed](err); ok {
		x.link.answerClose(closed.Code)
	} else {
		x.link.drop()
	}
	x.link.gone(err)
}
