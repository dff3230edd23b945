package playerapi

import (
	"time"

	"github.com/lxzan/gws"
)

// seat keeps a stream with its socket, in place of the map that gws would make.
type seat struct{ stream *stream }

func (*seat) Load(string) (any, bool)      { return nil, false }
func (*seat) Delete(string)                {}
func (*seat) Store(string, any)            {}
func (*seat) Range(func(string, any) bool) {}
func (*seat) Len() int                     { return 0 }

// socketEvents is what gws calls for a connection.
type socketEvents struct{ gws.BuiltinEventHandler }

func streamOf(c *gws.Conn) *stream { return c.Session().(*seat).stream }

func (socketEvents) OnPing(c *gws.Conn, payload []byte) {
	s := streamOf(c)
	s.heard.Store(time.Now().UnixNano())
	s.send(opPong, payload)
}

func (socketEvents) OnPong(c *gws.Conn, _ []byte) { streamOf(c).heard.Store(time.Now().UnixNano()) }

func (socketEvents) OnMessage(c *gws.Conn, m *gws.Message) {
	streamOf(c).receive(m.Bytes())
	_ = m.Close() // gives its buffer back
}

func (socketEvents) OnClose(c *gws.Conn, _ error) {
	s := streamOf(c)
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if x := s.door.streams; x.leave(s) {
		x.lose(s)
	}
}
