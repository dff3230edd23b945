package export

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/waittest"
)

// strict is a receiver of syslog over TCP: octet counting, RFC 5424, one entry after the other.
type strict struct {
	t       *testing.T
	address string
	config  *tls.Config // nil: without TLS

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	numbers  []uint64 // of the entries, in the order in which they arrived
	after    int      // 0, or so many messages until the connection is cut with what is unread
}

func newReceiver(t *testing.T, config *tls.Config) *strict {
	r := &strict{t: t, address: "127.0.0.1:0", config: config}
	r.start()
	t.Cleanup(r.stop)
	return r
}

func (r *strict) start() {
	l, err := net.Listen("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	r.listener, r.address, r.conns = l, l.Addr().String(), map[net.Conn]bool{}
	r.mu.Unlock()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.mu.Lock()
			r.conns[c] = true
			r.mu.Unlock()
			go r.serve(c)
		}
	}()
}

// stop ends the receiver as kill -9 does: unread bytes are lost.
func (r *strict) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listener.Close()
	for c := range r.conns {
		c.Close()
	}
}

var header = regexp.MustCompile(`^<(108|109)>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [!-~]{1,255} muster - audit \[meta sequenceId="(\d+)"\]\[origin software="muster" swVersion="[!-~]{1,32}"\] `)

func (r *strict) serve(raw net.Conn) {
	defer raw.Close()
	c := raw
	if r.config != nil {
		c = tls.Server(raw, r.config)
	}
	from := bufio.NewReader(c)
	for {
		text, err := from.ReadString(' ')
		if err != nil {
			return
		}
		n, err := strconv.Atoi(strings.TrimSuffix(text, " "))
		if err != nil || n < 1 || n > MessageMax {
			r.t.Errorf("a length of %q", text)
			return
		}
		m := make([]byte, n)
		if _, err := io.ReadFull(from, m); err != nil {
			return
		}
		head := header.FindSubmatch(m)
		if head == nil {
			r.t.Errorf("not a message of RFC 5424: %s", m)
			return
		}
		var d audit.Document
		if err := json.Unmarshal(m[len(head[0]):], &d); err != nil || fmt.Sprint(d.No) != string(head[2]) || d.Reason != "Störung" {
			r.t.Errorf("%v: %s", err, m)
			return
		}
		r.mu.Lock()
		r.numbers = append(r.numbers, d.No)
		cut := r.after > 0 && len(r.numbers) == r.after
		r.mu.Unlock()
		if cut {
			raw.(*net.TCPConn).SetLinger(0) // as the network does for a process that dies with unread bytes
			return
		}
	}
}

func (r *strict) got() []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]uint64(nil), r.numbers...)
}

func (r *strict) until(n int) {
	r.t.Helper()
	waittest.Until(r.t, fmt.Sprint(n, " messages arrive"), func() bool { return len(r.got()) >= n })
}

// check requires all entries up to a number, in the order of their first arrival, in at most this many messages.
func (r *strict) check(last uint64, most int) {
	r.t.Helper()
	next, all := uint64(1), r.got()
	for _, no := range all {
		if no > next {
			r.t.Errorf("entry %d arrives before entry %d", no, next)
			return
		}
		if no == next {
			next++
		}
	}
	if next != last+1 || len(all) > most {
		r.t.Errorf("%d messages with the entries up to %d, want %d messages at most, and %d entries", len(all), next-1, most, last)
	}
}

// authority makes a certificate for 127.0.0.1, and a file with its authority.
func authority(t *testing.T) (config *tls.Config, ca string) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: s.TLS.Certificates}, ca
}

func TestStreams(t *testing.T) {
	t.Parallel()
	config, ca := authority(t)
	for name, c := range map[string]*tls.Config{"tcp": nil, "tls": config} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, r := newBook(5000), newReceiver(t, c)
			target := "syslog+" + name + "://" + r.address
			if c != nil {
				target += "?ca=" + ca
			}
			begin(t, b, target, nil)
			waittest.Until(t, "the position is recorded", func() bool { return b.position() == 5000 })
			b.add(3)
			waittest.Until(t, "the position is recorded", func() bool { return b.position() == 5003 })
			r.check(5003, 5003)
		})
	}
}

// A receiver that dies with unread messages gets them again, wherever that happens, and the position is never ahead of it.
func TestReceiverDies(t *testing.T) {
	t.Parallel()
	config, ca := authority(t)
	for name, c := range map[string]*tls.Config{"tcp": nil, "tls": config} {
		for _, after := range []int{1, 299, 300, 777} {
			t.Run(fmt.Sprint(name, after), func(t *testing.T) {
				t.Parallel()
				b, r := newBook(300), newReceiver(t, c)
				r.after = after
				b.recorded = func(no uint64) {
					if got := r.got(); len(got) == 0 || uint64(len(got)) < no {
						t.Errorf("position %d, and the receiver has %d messages", no, len(got))
					}
				}
				target := "syslog+" + name + "://" + r.address
				if c != nil {
					target += "?ca=" + ca
				}
				begin(t, b, target, nil)
				waittest.Until(t, "the position is recorded", func() bool { return b.position() == 300 })
				b.add(600)
				waittest.Until(t, "the position is recorded", func() bool { return b.position() == 900 })
				r.check(900, 900+1200)
			})
		}
	}
}

// A hostile receiver costs the service only the attempt, whose duration is limited, and no entry counts as received.
func TestHostileReceivers(t *testing.T) {
	t.Parallel()
	config, ca := authority(t)
	for name, c := range map[string]struct {
		target string
		serve  func(c net.Conn)
		want   string        // part of the error
		wait   time.Duration // for a write
	}{
		"closes":       {"tcp", func(net.Conn) {}, "", time.Minute},
		"floods":       {"tcp", func(c net.Conn) { go io.Copy(io.Discard, c); io.Copy(c, endless{}) }, "", time.Minute},
		"never closes": {"tcp", func(c net.Conn) { io.Copy(io.Discard, c); <-t.Context().Done() }, "does not close", time.Minute},
		"never reads":  {"tcp", func(c net.Conn) { c.(*net.TCPConn).SetReadBuffer(4096); <-t.Context().Done() }, "timeout", 100 * time.Millisecond},
		"never reads TLS": {"tls?ca=" + ca, func(c net.Conn) {
			c.(*net.TCPConn).SetReadBuffer(4096)
			_ = tls.Server(c, config).Handshake()
			<-t.Context().Done()
		}, "timeout", 100 * time.Millisecond},
		"half TLS":       {"tls", func(c net.Conn) { c.Write([]byte{0x16, 3, 3}) }, "", time.Minute},
		"no TLS":         {"tls", func(c net.Conn) { fmt.Fprint(c, "SSH-2.0-x\r\n"); io.Copy(io.Discard, c) }, "tls", time.Minute},
		"other identity": {"tls", func(c net.Conn) { _ = tls.Server(c, config).Handshake() }, "certificate", time.Minute},
		"closes TLS":     {"tls?ca=" + ca, func(c net.Conn) { _ = tls.Server(c, config).Handshake() }, "", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			serve := c.serve
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				c.SetDeadline(time.Now().Add(time.Minute))
				serve(c)
			}()
			network, query, _ := strings.Cut(c.target, "?")
			targets, err := Parse("syslog+" + network + "://" + l.Addr().String() + "?" + query)
			if err != nil {
				t.Fatal(err)
			}
			s := &stream{to: targets[0], writeWait: c.wait, closeWait: 200 * time.Millisecond}
			defer s.drop()
			docs := make([]audit.Document, 256)
			for i := range docs {
				docs[i] = audit.Document{No: uint64(i + 1), Reason: strings.Repeat("x", 4000)}
			}
			for range 16 { // more than the buffers on the way have room for
				if _, err = s.send(t.Context(), docs); err != nil {
					break
				}
			}
			if err == nil {
				err = s.confirm(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if conn := s.conn; conn != nil {
				s.drop()
				if err := conn.tcp.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
					t.Errorf("the connection is not closed: %v", err)
				}
			}
		})
	}
}

// Closing TLS would wait five seconds for a receiver that does not read, and the next leader with it.
func TestDropClosesTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{conn: &connection{Conn: unclosed{raw, t}, tcp: raw.(*net.TCPConn)}}
	s.drop()
	if err := raw.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is not closed: %v", err)
	}
}

// unclosed stands for the TLS connection, which drop must not close.
type unclosed struct {
	net.Conn
	t *testing.T
}

func (c unclosed) Close() error {
	c.t.Error("drop closes TLS, not TCP")
	return nil
}

// Over UDP a port without a program is noticed, and the messages arrive once a program listens.
func TestDatagrams(t *testing.T) {
	t.Parallel()
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.LocalAddr().String()
	l.Close()
	b := newBook(3)
	x, _ := begin(t, b, "syslog+udp://"+address, nil)
	waittest.Until(t, "the port is noticed to be closed", func() bool { return x.workers[0].status().failures > 0 })
	if l, err = net.ListenPacket("udp", address); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for no := 1; no <= 3; {
		m := make([]byte, 2*MessageMax)
		n, _, err := l.ReadFrom(m)
		if err != nil {
			t.Fatal(err)
		}
		head := header.FindSubmatch(m[:n])
		if head == nil {
			t.Fatalf("not a message of RFC 5424: %s", m[:n])
		}
		if string(head[2]) == fmt.Sprint(no) {
			no++
		}
	}
	waittest.Until(t, "the position is recorded", func() bool { return b.position() == 3 })
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }
