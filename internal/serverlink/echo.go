package serverlink

import (
	"net/http"

	"github.com/lxzan/gws"
)

// Echo is a door with nothing behind it: it takes every game server and answers every request with 200. `muster bench`
// measures with it what the connections alone cost.
func Echo() http.Handler {
	upgrader := gws.NewUpgrader(echo{}, upgradeOptions())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if socket, err := upgrader.Upgrade(w, r); err == nil {
			go socket.ReadLoop()
		}
	})
}

type echo struct{ gws.BuiltinEventHandler }

func (echo) OnMessage(c *gws.Conn, m *gws.Message) {
	r, ok := readRequest(m.Bytes())
	_ = m.Close() // gives its buffer back; the request keeps none of it
	if !ok {
		return
	}
	b := newFrame()
	*b = appendOK(*b, &r)
	_, _ = c.NetConn().Write(seal(*b, opText)) // the reading side notices a lost connection
	putFrame(b)
}
