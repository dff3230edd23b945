package playerapi_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// With and without TLS, a client's messages on its stream are handled, even in fragments, and its close frame is answered.
func TestStreamsHearTheirClients(t *testing.T) {
	x := run(t, nil)
	for _, scheme := range []string{"ws", "wss"} {
		for _, c := range []struct {
			player string
			end    func(player string, c *websocket.Conn) error
			want   int
		}{
			{"who-goes", func(_ string, c *websocket.Conn) error {
				return c.WriteMessage(websocket.CloseMessage, []byte{3, 0xE8})
			}, 1000},
			{"who-says-too-much", func(_ string, c *websocket.Conn) error { return say(c, strings.Repeat("x", 5<<10)) }, 1009},
			{"who-breaks-rules", func(_ string, c *websocket.Conn) error {
				_, err := c.NetConn().Write([]byte{0x83, 0x80, 0, 0, 0, 0}) // a frame with an opcode that is none
				return err
			}, 1002},
			{"who-comes-again", func(player string, _ *websocket.Conn) error { x.login(player); return nil }, 4409},
		} {
			player := c.player + "-" + scheme
			t.Run(player, func(t *testing.T) {
				f := newFrames()
				dialer := websocket.Dialer{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
				socket, _, err := dialer.Dial(scheme+"://"+x.base+"player/stream",
					http.Header{"Authorization": {"Bearer " + x.login(player)}, "Sec-WebSocket-Protocol": {"playerflow.v1"}})
				if err != nil {
					t.Fatal(err)
				}
				defer socket.NetConn().Close()
				go f.read(socket)
				for range 3 {
					if err := say(socket, `{"type":"ping"}`); err != nil {
						t.Fatal(err)
					}
					x.next(f, "pong")
				}
				if err := say(socket, `{"type":`+strings.Repeat(" ", 3000)+`"ping"}`); err != nil {
					t.Fatal(err)
				}
				x.next(f, "pong")
				if err := say(socket, `{"type":"sing"}`); err != nil {
					t.Fatal(err)
				}
				x.next(f, "error")
				if err := c.end(player, socket); err != nil {
					t.Fatal(err)
				}
				if got := <-f.code; got != c.want {
					t.Errorf("closed with %d, want %d", got, c.want)
				}
			})
		}
	}
}

func say(c *websocket.Conn, text string) error {
	return c.WriteMessage(websocket.TextMessage, []byte(text))
}
