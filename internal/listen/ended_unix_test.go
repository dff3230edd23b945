//go:build unix

package listen

import (
	"errors"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

// A reader that pauses, because its peer sends too much, learns that the connection was closed or that its deadline has passed. It loses no data by asking.
func TestEnded(t *testing.T) {
	taken := make(chan *conn, 1)
	s := serve(t, Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		taken <- c.(*conn)
	})})
	client, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	c := <-taken
	defer c.Close()
	ended := func(want error) {
		t.Helper()
		if err := c.Ended(); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	ended(nil)
	for at, want := range map[time.Time]error{time.Now().Add(-time.Second): os.ErrDeadlineExceeded, {}: nil} {
		if err := c.SetReadDeadline(at); err != nil {
			t.Fatal(err)
		}
		ended(want)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 2)
	if n, err := c.Read(b); n != 1 || err != nil {
		t.Errorf("then %d bytes are read: %v", n, err)
	}
	_ = c.Close()
	ended(net.ErrClosed)
}
