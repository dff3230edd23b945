package listen

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"unsafe"
)

// A connection that a WebSocket door takes over keeps no memory of its handshake, and loses no bytes that arrived early.
func TestHandshakesLeaveNothingBehind(t *testing.T) {
	if n := len(readBuffers) + len(lastRead); n != 3 {
		t.Fatalf("crypto/tls has %d of the buffers that are looked for by name, want 3: what does it keep now?", n)
	}
	taken := make(chan *tls.Conn, 1)
	ca := authority(t)
	s := serve(t, Config{Certificate: ca.Certificate, ReleaseBuffers: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		taken <- c.(*tls.Conn)
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
		go func() { _, _ = io.Copy(c, buffered) }() // ends with the connection
	})})
	for name, version := range map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			c, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{RootCAs: ca.Pool(), MinVersion: version, MaxVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			early := bytes.Repeat([]byte("early "), 1000)
			for _, b := range [][]byte{[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), early[:3000], early[3000:]} {
				if _, err := c.Write(b); err != nil {
					t.Fatal(err)
				}
			}
			in := bufio.NewReader(c)
			if _, err := in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			if _, err := in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			for _, sent := range [][]byte{early, []byte("late")} {
				if bytes.Equal(sent, []byte("late")) {
					if _, err := c.Write(sent); err != nil {
						t.Fatal(err)
					}
				}
				got := make([]byte, len(sent))
				if _, err := io.ReadFull(in, got); err != nil || !bytes.Equal(got, sent) {
					t.Fatalf("echo of %d bytes: %v, equal %v", len(sent), err, bytes.Equal(got, sent))
				}
			}
			if c := <-taken; c.NetConn().(*conn).secured != c {
				t.Error("the buffers of this connection are not released while it is idle")
			}
		})
	}
}

// The internals of crypto/tls are not touched unless the operator configures that.
func TestBuffersAreLeftAlone(t *testing.T) {
	ca := authority(t)
	taken := make(chan net.Conn, 1)
	s := serve(t, Config{Certificate: ca.Certificate, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
		}
		taken <- c
	})})
	c, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{RootCAs: ca.Pool()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	ours := (<-taken).(*tls.Conn)
	defer ours.Close()
	room := 0
	for _, offset := range readBuffers {
		room += (*bytes.Buffer)(unsafe.Add(unsafe.Pointer(ours), offset)).Cap()
	}
	if room == 0 || ours.NetConn().(*conn).secured != nil {
		t.Errorf("the buffers have room for %d bytes; want them as crypto/tls left them", room)
	}
}

func TestHandshakeBuffersAreEmptied(t *testing.T) {
	ca := authority(t)
	here, there := net.Pipe()
	defer here.Close()
	c := tls.Server(there, &tls.Config{GetCertificate: ca.Certificate})
	defer c.Close()
	room := func() (n int) {
		for _, offset := range readBuffers {
			n += (*bytes.Buffer)(unsafe.Add(unsafe.Pointer(c), offset)).Cap()
		}
		return n
	}
	client := tls.Client(here, &tls.Config{InsecureSkipVerify: true})
	go func() { _ = client.Handshake(); _, _ = io.Copy(io.Discard, client) }() // ends with the pipe
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	before := room()
	forgetHandshake(c)
	if after := room(); before == 0 || after != 0 {
		t.Errorf("the buffers have room for %d bytes after the handshake and %d after it is forgotten, want some and none", before, after)
	}
}
