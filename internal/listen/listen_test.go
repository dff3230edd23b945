package listen

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/frames/framestest"
	"github.com/musterhq/muster/internal/listen/devca"
	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/waittest"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// serve runs a port on loopback until the test ends.
func serve(t *testing.T, cfg Config) *Server {
	t.Helper()
	cfg.Addr = "127.0.0.1:0"
	if cfg.Log == nil {
		cfg.Log = quiet()
	}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Errorf("Stop: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

func authority(t *testing.T) *devca.Authority {
	t.Helper()
	a, err := devca.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func hello(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello "+r.Proto) }

func get(t *testing.T, tlsConfig *tls.Config, url string) string {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
	res, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestPlainAndTLSOnOnePort(t *testing.T) {
	ca := authority(t)
	s := serve(t, Config{Handler: http.HandlerFunc(hello), Certificate: ca.Certificate})
	addr := s.Addr().String()

	if got, want := get(t, nil, "http://"+addr), "hello HTTP/1.1"; got != want {
		t.Errorf("plain: got %q, want %q", got, want)
	}
	for name, version := range map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
		cfg := &tls.Config{RootCAs: ca.Pool(), MinVersion: version, MaxVersion: version}
		if got, want := get(t, cfg, "https://"+addr), "hello HTTP/1.1"; got != want {
			t.Errorf("TLS %s: got %q, want %q", name, got, want)
		}
	}
	if st := s.Stats(); st.Plain != 1 || st.TLS != 2 {
		t.Errorf("got %+v, want 1 plain and 2 TLS", st)
	}
}

func TestSilentClientsHoldNobodyUp(t *testing.T) {
	s := serve(t, Config{Handler: http.HandlerFunc(hello)})
	for range 50 {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
	}
	waittest.Until(t, "the silent connections", func() bool { return s.Stats().Waiting == 50 })
	if got := get(t, nil, "http://"+s.Addr().String()); got != "hello HTTP/1.1" {
		t.Errorf("got %q beside silent clients", got)
	}
}

// A request head of headerBytesMax gets 431 and its connection is closed, however much more of it follows.
func TestLargeHeadsAreRefused(t *testing.T) {
	s := serve(t, Config{Handler: http.HandlerFunc(hello)})
	ask := func(padding int) string {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Padding: "+strings.Repeat("p", padding)+"\r\n\r\n")
		}()
		status, _, _ := strings.Cut(readAll(c), "\r\n")
		return status
	}
	if got := ask(headerBytesMax / 2); got != "HTTP/1.1 200 OK" {
		t.Errorf("a head of half the limit: got %q", got)
	}
	if got := ask(headerBytesMax + 16<<10); got != "HTTP/1.1 431 Request Header Fields Too Large" { // net/http allows a buffer more
		t.Errorf("a head above the limit: got %q", got)
	}
}

// readAll reads until the connection ends, in whatever way.
func readAll(c net.Conn) string {
	text, _ := io.ReadAll(c)
	return string(text)
}

func TestTLSWithoutCertificateIsTurnedAway(t *testing.T) {
	var logged logtest.Log
	s := serve(t, Config{Handler: http.HandlerFunc(hello), Log: slog.New(slog.NewTextHandler(&logged, nil))})
	const clients = 5
	for range clients {
		c, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{ServerName: "localhost"})
		if err == nil {
			_ = c.Close()
			t.Fatal("TLS handshake succeeded without a certificate")
		}
	}
	waittest.Until(t, "the refusals to be counted", func() bool { return s.Stats().TurnedAway == clients })
	waittest.Until(t, "the warning", func() bool { return strings.Contains(logged.String(), "--tls-cert") })
	if n := strings.Count(logged.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings for %d clients, want 1:\n%s", n, clients, logged.String())
	}
}

// The C++ SDK sends an IP literal as server name, which RFC 6066 forbids and Go's client never does: so a ClientHello is
// made for a name of the same length and patched.
func TestServerNameMayBeAnIPLiteral(t *testing.T) {
	s := serve(t, Config{Handler: http.HandlerFunc(hello), Certificate: authority(t).Certificate})
	hello := clientHello(t, "aaa.aaa.a")
	patched := bytes.Replace(hello, []byte("aaa.aaa.a"), []byte("127.0.0.1"), 1)
	if bytes.Equal(hello, patched) {
		t.Fatal("server name not found in the ClientHello")
	}
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write(patched); err != nil {
		t.Fatal(err)
	}
	var head [6]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		t.Fatal(err)
	}
	if head[0] != 0x16 || head[5] != 2 { // handshake record, ServerHello
		t.Errorf("got record % x, want a ServerHello", head)
	}
}

func clientHello(t *testing.T, name string) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		_ = tls.Client(theirs, &tls.Config{ServerName: name}).Handshake() // fails when the pipe is closed
	}()
	defer func() { _ = ours.Close() }()
	buf := make([]byte, 16<<10)
	n, err := ours.Read(buf[:5])
	if err != nil || n != 5 {
		t.Fatalf("record header: %d bytes, %v", n, err)
	}
	size := int(buf[3])<<8 | int(buf[4])
	if _, err := io.ReadFull(ours, buf[5:5+size]); err != nil {
		t.Fatal(err)
	}
	return buf[:5+size]
}

// Stop lets requests finish and drops WebSockets with no frame at all: a close frame strands C++ game servers for good.
func TestStopDrainsRequestsAndDropsWebSockets(t *testing.T) {
	ca := authority(t)
	inside, release := make(chan struct{}), make(chan struct{})
	var up websocket.Upgrader
	mux := http.NewServeMux()
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		close(inside)
		<-release
		hello(w, r)
	})
	mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
		if c, err := up.Upgrade(w, r, nil); err == nil {
			go framestest.Listen(c, func([]byte) {})
		}
	})
	s, err := Open(Config{Addr: "127.0.0.1:0", Handler: mux, Certificate: ca.Certificate, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	addr := s.Addr().String()

	plain, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	secure, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: ca.Pool()})
	if err != nil {
		t.Fatal(err)
	}
	sockets := []net.Conn{plain, secure}
	for _, c := range sockets {
		upgrade(t, c)
	}
	waittest.Until(t, "two upgraded connections", func() bool { return s.Stats().Upgraded == 2 })

	answer := make(chan string, 1)
	go func() { answer <- get(t, nil, "http://"+addr+"/slow") }()
	<-inside
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(context.Background()) }()
	<-s.closing
	close(release)
	if got := <-answer; got != "hello HTTP/1.1" {
		t.Errorf("request in flight got %q", got)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Stop: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	for _, c := range sockets {
		rest, _ := io.ReadAll(c) // a reset is as good as an end
		if len(rest) != 0 {
			t.Errorf("got % x after Stop, want nothing", rest)
		}
		_ = c.Close()
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		_ = c.Close()
		t.Error("port still accepts after Stop")
	}
}

// The connection of a client whose body does not end is closed. A WebSocket that was opened earlier continues.
func TestBodiesEndOrAreGivenUp(t *testing.T) {
	gaveUp := make(chan error, 1)
	var up websocket.Upgrader
	mux := http.NewServeMux()
	mux.HandleFunc("/body", func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		gaveUp <- err
	})
	mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
		if c, err := up.Upgrade(w, r, nil); err == nil {
			go framestest.Listen(c, func([]byte) {})
		}
	})
	s, err := Open(Config{Addr: "127.0.0.1:0", Handler: mux, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	if s.http.ReadTimeout != requestWait || s.http.WriteTimeout != answerWait {
		t.Errorf("requests may take %s, answers %s; want %s and %s", s.http.ReadTimeout, s.http.WriteTimeout, requestWait, answerWait)
	}
	s.http.ReadTimeout, s.http.WriteTimeout = time.Second/4, time.Second/4
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	defer func() {
		if err := errors.Join(s.Stop(context.Background()), <-served); err != nil {
			t.Error(err)
		}
	}()

	dial := func() net.Conn {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	socket, slow := dial(), dial()
	defer func() { _ = errors.Join(socket.Close(), slow.Close()) }()
	upgrade(t, socket)
	if _, err := io.WriteString(slow, "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf a bo"); err != nil {
		t.Fatal(err)
	}
	if err := <-gaveUp; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading the body ended with %v, want that its time is over", err)
	}
	if _, err := socket.Write([]byte{0x89, 0x80, 0, 0, 0, 0}); err != nil { // a ping
		t.Fatal(err)
	}
	var pong [2]byte
	if _, err := io.ReadFull(socket, pong[:]); err != nil || pong[0] != 0x8a {
		t.Errorf("the WebSocket answered % x, %v; want a pong", pong, err)
	}
}

func upgrade(t *testing.T, c net.Conn) {
	t.Helper()
	_, err := io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	var head []byte
	for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, one[0]) {
		if _, err := io.ReadFull(c, one); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 101 ")) {
		t.Fatalf("upgrade answered %q", head)
	}
}

// A later request of a connection without a credential has as long for its body as the first one. Only the time between two is short.
func TestSlowBodyOfALaterRequest(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for longer than unprovenIdle")
	}
	t.Parallel()
	limits, err := connlimit.Derive(1024, connlimit.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, Config{Limits: connlimit.New(connlimit.Config{Limits: limits}), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		} else {
			_, _ = w.Write(body)
		}
	})})
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answers := bufio.NewReader(c)
	for _, pause := range []time.Duration{0, unprovenIdle + time.Second/2} {
		_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
		time.Sleep(pause)
		_, _ = io.WriteString(c, "b")
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("after a pause of %v: %v", pause, err)
		}
		if body, err := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK || string(body) != "ab" {
			t.Errorf("after a pause of %v: %s %q, %v", pause, answer.Status, body, err)
		}
	}
}

// exchange sends a request over c and returns the answer.
func exchange(t *testing.T, c net.Conn) *http.Response {
	t.Helper()
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer
}

// A client that keeps its connection and sends requests all the time loses none of them to a stop, nor does one that has just connected.
func TestDrain(t *testing.T) {
	s := serve(t, Config{Handler: http.HandlerFunc(hello)})
	dial := func() net.Conn {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	kept, fresh := dial(), dial()
	for range 2 {
		if answer := exchange(t, kept); answer.Close {
			t.Fatal("the connection ends before the port drains")
		}
	}
	waittest.Until(t, "both connections to be accepted", func() bool { return s.idle.Load() == 1 && s.Stats().Waiting == 1 })
	drained := make(chan struct{})
	go func() {
		s.Drain(t.Context())
		close(drained)
	}()
	<-s.closing
	for name, c := range map[string]net.Conn{"kept": kept, "fresh": fresh} {
		select {
		case <-drained:
			t.Errorf("Drain does not wait for the %s connection", name)
		default:
		}
		if answer := exchange(t, c); !answer.Close {
			t.Errorf("the %s connection stays open", name)
		}
	}
	<-drained
}

// Without clients, a stop does not wait.
func TestDrainWithoutClients(t *testing.T) {
	serve(t, Config{Handler: http.HandlerFunc(hello)}).Drain(t.Context())
}
