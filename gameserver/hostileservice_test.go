package gameserver

import (
	"crypto/sha1"
	"encoding/base64"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// A hostile service may send any bytes: the game server closes the connection and opens another.
func TestHostileService(t *testing.T) {
	hostile := [][]byte{
		{0x81, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0},                  // a length of 2^63
		{0x01, 0x01, 'x', 0x80, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0}, // of 2^63, behind a fragment
		{0x83, 0x00}, // an unknown opcode
		append([]byte{0x81, 41}, `{"seq":1,"type":"OnPlayerLeft","data":{}} `[:41]...), // a notice, at last
	}
	attempts := make(chan []byte, len(hostile))
	for _, sent := range hostile {
		attempts <- sent
	}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := <-attempts
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		hash := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: "+
			noticesProtocol+"\r\nSec-WebSocket-Accept: "+base64.StdEncoding.EncodeToString(hash[:])+"\r\n\r\n"+string(sent))
		_, _ = io.Copy(io.Discard, conn) // until the game server has given up
	}))
	defer service.Close()
	base, err := url.Parse(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	g := &GameInstance{server: &Server{log: slog.New(slog.DiscardHandler)}, base: *base, client: http.DefaultClient, token: "t"}
	for n, err := range g.Notices(t.Context()) {
		if err != nil || n.Type != OnPlayerLeft || len(attempts) != 0 {
			t.Errorf("got %+v, %v with %d attempts left, want the notice that comes last", n, err, len(attempts))
		}
		break
	}
}
