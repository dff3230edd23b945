package playerapi_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"github.com/lxzan/gws"
)

// Over TLS and without: what a client says on its stream is heard, in fragments too, and its end is answered with a close frame.
func TestStreamsHearTheirClients(t *testing.T) {
	x := run(t, nil)
	for _, scheme := range []string{"ws", "wss"} {
		for _, c := range []struct {
			player string
			end    func(player string, c *gws.Conn) error
			want   uint16
		}{
			{"who-goes", func(_ string, c *gws.Conn) error { return c.WriteMessage(gws.OpcodeCloseConnection, []byte{3, 0xE8}) }, 1000},
			{"who-says-too-much", func(_ string, c *gws.Conn) error { return c.WriteString(strings.Repeat("x", 5<<10)) }, 1009},
			{"who-breaks-rules", func(_ string, c *gws.Conn) error { return c.WriteMessage(3, nil) }, 1002},
			{"who-comes-again", func(player string, _ *gws.Conn) error { x.login(player); return nil }, 4409},
		} {
			player := c.player + "-" + scheme
			t.Run(player, func(t *testing.T) {
				f := &frames{got: make(chan answer, 1000), code: make(chan uint16, 1)}
				socket, _, err := gws.NewClient(f, &gws.ClientOption{
					Addr: scheme + "://" + x.base + "player/stream", TlsConfig: &tls.Config{InsecureSkipVerify: true},
					RequestHeader: http.Header{"Authorization": {"Bearer " + x.login(player)}, "Sec-WebSocket-Protocol": {"playerflow.v1"}},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer socket.NetConn().Close()
				go socket.ReadLoop()
				for range 3 {
					if err := socket.WriteString(`{"type":"ping"}`); err != nil {
						t.Fatal(err)
					}
					x.next(f, "pong")
				}
				if err := socket.WriteString(`{"type":` + strings.Repeat(" ", 3000) + `"ping"}`); err != nil {
					t.Fatal(err)
				}
				x.next(f, "pong")
				if err := socket.WriteString(`{"type":"sing"}`); err != nil {
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
