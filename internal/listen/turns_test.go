package listen

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/waittest"
)

// workshop issues certificates and holds up the handshakes that ask for one.
type workshop struct {
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	open        chan struct{} // closed: no handshake waits any more

	mu                 sync.Mutex
	begun, under, most int
}

func (w *workshop) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	w.count(1)
	defer w.count(-1)
	<-w.open
	return w.certificate(hello)
}

func (w *workshop) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.under += n
	w.begun += max(n, 0)
	w.most = max(w.most, w.under)
}

func (w *workshop) handshakes() (begun, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.begun, w.most
}

// send opens a connection and sends bytes.
func send(t *testing.T, s *Server, b []byte) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	return c
}

// greeted waits for a ServerHello.
func greeted(t *testing.T, c net.Conn, about ...any) {
	t.Helper()
	var head [6]byte
	if _, err := io.ReadFull(c, head[:]); err != nil || head[0] != tlsHandshake || head[5] != 2 {
		t.Fatalf("%v: got % x, %v; want a ServerHello", about, head, err)
	}
}

// While handshakes use all turns, later ones wait, and a handshake whose client disconnects meanwhile is never computed.
func TestHandshakesTakeTurns(t *testing.T) {
	w := &workshop{certificate: authority(t).Certificate, open: make(chan struct{})}
	s := serve(t, Config{Handler: http.HandlerFunc(hello), Certificate: w.Certificate})
	hello := clientHello(t, "localhost")
	turns := cap(s.turns)
	var clients []net.Conn
	for range turns {
		clients = append(clients, send(t, s, hello))
	}
	waittest.Until(t, "handshakes for all turns", func() bool { begun, _ := w.handshakes(); return begun == turns })
	const gone, patient = 5, 20
	for range gone {
		if err := send(t, s, hello).Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range patient {
		clients = append(clients, send(t, s, hello))
	}
	waittest.Until(t, "all hellos to be read", func() bool { return s.Stats().TLS == uint64(turns+gone+patient) })
	close(w.open)
	for _, c := range clients {
		greeted(t, c)
	}
	begun, most := w.handshakes()
	if most != turns {
		t.Errorf("%d handshakes at once, want %d", most, turns)
	}
	if want := turns + patient; readsNow && begun != want {
		t.Errorf("%d handshakes were computed, want %d: not those of clients that had gone", begun, want)
	}
}

// Clients that stop in the middle of their hello, or are silent after it, keep no turn from others.
func TestSlowHandshakesKeepNoTurn(t *testing.T) {
	ca := authority(t)
	s := serve(t, Config{Handler: http.HandlerFunc(hello), Certificate: ca.Certificate})
	hello := clientHello(t, "localhost")
	for range 2 * cap(s.turns) {
		send(t, s, hello[:3])
		send(t, s, hello[:100])
		greeted(t, send(t, s, hello))
	}
	if got := get(t, &tls.Config{RootCAs: ca.Pool()}, "https://"+s.Addr().String()); got != "hello HTTP/1.1" {
		t.Errorf("got %q beside slow clients", got)
	}
}

// A hello may come in pieces, and in several records. RFC 8446, 5.1.
func TestHellosInPieces(t *testing.T) {
	s := serve(t, Config{Handler: http.HandlerFunc(hello), Certificate: authority(t).Certificate})
	whole := clientHello(t, "localhost")
	var records []byte
	for rest := whole[recordHead:]; len(rest) > 0; {
		n := min(len(rest), 100)
		records = append(binary.BigEndian.AppendUint16(append(records, whole[:3]...), uint16(n)), rest[:n]...)
		rest = rest[n:]
	}
	for name, sent := range map[string][]byte{"one record": whole, "many records": records} {
		for _, size := range []int{1, 4, 64, len(sent)} {
			first, rest := sent[:size], sent[size:]
			c := send(t, s, first)
			for piece := range bytes.Lines(rest) { // of any size
				if _, err := c.Write(piece); err != nil {
					t.Fatal(err)
				}
			}
			greeted(t, c, name, size)
		}
	}
}

// A record that is too long is refused at once, without waiting for the rest of it.
func TestTooLongARecord(t *testing.T) {
	s := serve(t, Config{Handler: http.HandlerFunc(hello), Certificate: authority(t).Certificate})
	c := send(t, s, []byte{tlsHandshake, 3, 1, 0xFF, 0xFF})
	var head [1]byte
	if _, err := io.ReadFull(c, head[:]); err != nil || head[0] != 0x15 {
		t.Errorf("got % x, %v; want an alert", head, err)
	}
}
