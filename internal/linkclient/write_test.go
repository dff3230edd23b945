package linkclient

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// A request ends with its context even if it cannot be written, because the service sends pings and reads nothing.
func TestRequestToServiceThatReadsNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	stuck := make(chan struct{})
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for head, one := []byte{}, make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, one...) {
			if _, err := io.ReadFull(conn, one); err != nil {
				return
			}
		}
		_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "+wsAccept+"\r\n\r\n")
		for pings := bytes.Repeat(append([]byte{0x80 | opPing, 100}, make([]byte, 100)...), 1000); err == nil; {
			_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
			_, err = conn.Write(pings)
		}
		close(stuck)
		<-t.Context().Done()
	}()
	client, err := Dial(t.Context(), Options{URL: "ws://" + listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Drop()
	<-stuck
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := client.Do(ctx, "HeartbeatServerProcess", "")
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the request does not end")
	}
}
