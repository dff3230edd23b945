package streams

import (
	"errors"

	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/playerapi/socket"
	"github.com/musterhq/muster/internal/steady"
)

// heardFrom handles a client's frames.
type heardFrom struct{ stream *stream }

func (h heardFrom) Ping(payload []byte) {
	h.Pong()
	h.stream.send(socket.Pong, payload)
}

func (h heardFrom) Pong() { h.stream.heard.Store(steady.Now()) }

func (h heardFrom) Message(data []byte) { h.stream.receive(data) }

func (h heardFrom) Wrong(v *frames.Violation) { h.stream.close(v.Code) }

func (h heardFrom) End(err error) {
	s := h.stream
	closed, ok := errors.AsType[*frames.Closed](err)
	if !ok {
		closed = &frames.Closed{}
	}
	s.end(ok, closed.Code)
	if x := s.of; x.leave(s) && s.node == x.Node() { // otherwise it already counts as lost
		x.lose(s)
	}
}
