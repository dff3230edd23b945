package link

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/waittest"
)

var (
	start   = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	cluster = uuid.MustParse("0b5ac9f4-3a8f-4e0c-9d5e-2f6a3a3c1b11")
	another = uuid.MustParse("7e1f0d3c-52a4-4c57-8a0b-91f1f1c1d222")
)

// clock is a wall clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newAuthority(t testing.TB, id uuid.UUID) *trust.Authority {
	t.Helper()
	a, err := trust.New(id, start)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newIdentity(t testing.TB, a *trust.Authority, id trust.NodeID, ahead time.Duration) *trust.Identity {
	t.Helper()
	i, err := trust.NewIdentity(id, a, (&clock{now: start.Add(ahead)}).time)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// open starts the link of a node on a free port of this machine.
func open(t testing.TB, i *trust.Identity, change func(*Options)) *Link {
	t.Helper()
	o := Options{Listen: "127.0.0.1:0", Identity: i}
	if os.Getenv("LINK_LOG") != "" {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", i.Node())
	}
	if change != nil {
		change(&o)
	}
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- l.Serve() }()
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), <-served); err != nil {
			t.Error(err)
		}
		if n := left(l); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
	return l
}

// left counts connections.
func left(l *Link) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns) + l.limits.Stats().Open
}

// echo answers with the peer's id and the data that it reads.
func echo(_ context.Context, conn net.Conn, peer trust.NodeID) {
	if _, err := io.WriteString(conn, string(peer)+"\n"); err == nil {
		_, _ = io.Copy(conn, conn)
	}
}

func withEcho(o *Options) { o.Node = echo }

// greeted reads echo's first line.
func greeted(c net.Conn) (string, error) {
	var line []byte
	for b := make([]byte, 1); ; line = append(line, b[0]) {
		if _, err := io.ReadFull(c, b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			return string(line), nil
		}
	}
}

func mustDial(t testing.TB, from, to *Link) net.Conn {
	t.Helper()
	c, err := from.Dial(t.Context(), to.Advertised(), to.options.Identity.Node(), Node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if peer, err := greeted(c); err != nil || peer != string(from.options.Identity.Node()) {
		t.Fatalf("greeted as %q, %v", peer, err)
	}
	return c
}

// wantEnd checks that the other side closes a connection, without data.
func wantEnd(t testing.TB, what string, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	n, err := c.Read(make([]byte, 1))
	if timeout, ok := errors.AsType[net.Error](err); n != 0 || err == nil || ok && timeout.Timeout() {
		t.Errorf("%s: read %d bytes, %v; want the end", what, n, err)
	}
}

func (l *Link) refusals(why refusal) uint64 { return l.refused[why].Load() }

func TestNodesTalk(t *testing.T) {
	a := newAuthority(t, cluster)
	n1 := open(t, newIdentity(t, a, "n1", 0), withEcho)
	n2 := open(t, newIdentity(t, a, "n2", time.Hour), withEcho) // clocks an hour apart
	c := mustDial(t, n2, n1)
	mustDial(t, n1, n2)
	sent, got := make([]byte, 1<<20), make([]byte, 1<<20) // more than a stranger may send
	_, _ = rand.Read(sent)
	go func() { _, _ = c.Write(sent) }()
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(sent, got) {
		t.Errorf("a mebibyte to and fro: %v", err)
	}
	for _, why := range []refusal{byLimit, byHandshake, byCertificate, byRemoval, byJoin} {
		if n := n1.refusals(why); n != 0 {
			t.Errorf("%d refusals by %s", n, refusalNames[why])
		}
	}
	if c, err := n2.Dial(t.Context(), n1.Advertised(), "", Node); err != nil {
		t.Errorf("to any node: %v", err)
	} else if peer, err := greeted(c); err != nil || peer != "n2" {
		t.Errorf("to any node: greeted as %q, %v", peer, err)
	} else {
		_ = c.Close()
	}
}

// stranger returns a client configuration with its own certificate, which does not verify the server.
func stranger(i *trust.Identity, protocols ...string) *tls.Config {
	c := i.Client("")
	c.VerifyConnection, c.NextProtos = nil, protocols
	return c
}

func TestStrangersAreRefused(t *testing.T) {
	a := newAuthority(t, cluster)
	var log logtest.Log
	served := func(context.Context, net.Conn, trust.NodeID) { t.Error("a stranger was served") }
	l := open(t, newIdentity(t, a, "n1", 0), func(o *Options) {
		o.Node, o.Log = served, slog.New(slog.NewTextHandler(&log, nil))
	})
	l.noted.Most = 1000 // each gets its line
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: start.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	node := string(Node)
	for name, x := range map[string]struct {
		config *tls.Config
		why    refusal
		says   string // to the operator
	}{
		"of another authority":  {stranger(newIdentity(t, newAuthority(t, cluster), "n2", 0), node), byCertificate, "trusted authority"},
		"of another cluster":    {stranger(newIdentity(t, newAuthority(t, another), "n2", 0), string(Raft)), byCertificate, "trusted authority"},
		"expired":               {stranger(newIdentity(t, a, "n2", -31*24*time.Hour), node), byCertificate, "has expired"},
		"not yet valid":         {stranger(newIdentity(t, a, "n2", 25*time.Hour), node), byCertificate, "not valid yet"},
		"signed by itself":      {&tls.Config{InsecureSkipVerify: true, NextProtos: []string{node}, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, byCertificate, "trusted authority"},
		"without certificate":   {&tls.Config{InsecureSkipVerify: true, NextProtos: []string{node}}, byHandshake, ""},
		"unknown protocol":      {stranger(newIdentity(t, a, "n2", 0), "h2", "http/1.1"), byHandshake, ""},
		"garbage":               {stranger(newIdentity(t, a, "n2", 0), "\x00\xff"), byHandshake, ""},
		"no protocol":           {stranger(newIdentity(t, a, "n2", 0)), byHandshake, ""},
		"join, without handler": {&tls.Config{InsecureSkipVerify: true, NextProtos: []string{string(joining)}}, byHandshake, ""},
		"join and more":         {&tls.Config{InsecureSkipVerify: true, NextProtos: []string{string(joining), node}}, byHandshake, ""},
		"TLS 1.2":               {&tls.Config{InsecureSkipVerify: true, NextProtos: []string{node}, MaxVersion: tls.VersionTLS12}, byHandshake, ""},
	} {
		t.Run(name, func(t *testing.T) {
			log.Reset()
			before := l.refusals(x.why)
			c, err := tls.Dial("tcp", l.Advertised(), x.config)
			if err == nil {
				wantEnd(t, "after the handshake", c)
				_ = c.Close()
			}
			waittest.Until(t, "it is counted", func() bool { return l.refusals(x.why) == before+1 })
			if x.says != "" {
				waittest.Until(t, "the log tells "+x.says, func() bool { return bytes.Contains([]byte(log.String()), []byte(x.says)) })
			} else if log.String() != "" {
				t.Errorf("any stranger can cause lines in the log: %s", log.String())
			}
		})
	}
	for name, sent := range map[string][]byte{
		"plain HTTP":     []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"zeros":          make([]byte, 1000),
		"a long hello":   append([]byte{22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff}, make([]byte, 0x40<<8)...),
		"an empty hello": {22, 3, 1, 0, 4, 1, 0, 0, 0},
	} {
		before := l.refusals(byHandshake)
		c, err := net.Dial("tcp", l.Advertised())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(sent)
		waittest.Until(t, "it is counted", func() bool { return l.refusals(byHandshake) == before+1 })
		_, _ = io.Copy(io.Discard, c) // an alert and the end
		_ = c.Close()
		waittest.Until(t, name+" is forgotten", func() bool { return left(l) == 0 })
	}
}

func TestDialRefusesStrangers(t *testing.T) {
	a := newAuthority(t, cluster)
	n1 := open(t, newIdentity(t, a, "n1", 0), withEcho)
	dial := func(to *Link, id trust.NodeID) error {
		c, err := n1.Dial(t.Context(), to.Advertised(), id, Node)
		if err == nil {
			_ = c.Close()
		}
		return err
	}
	n2 := open(t, newIdentity(t, a, "n2", 0), withEcho)
	if err := dial(n2, "n3"); !errors.Is(err, trust.ErrOtherNode) {
		t.Errorf("another node than the expected one: %v", err)
	}
	for name, x := range map[string]struct {
		i    *trust.Identity
		want error
	}{
		"another authority": {newIdentity(t, newAuthority(t, cluster), "n2", 0), trust.ErrUntrusted},
		"another cluster":   {newIdentity(t, newAuthority(t, another), "n2", 0), trust.ErrUntrusted},
		"expired":           {newIdentity(t, a, "n2", -31*24*time.Hour), trust.ErrExpired},
		"not yet valid":     {newIdentity(t, a, "n2", 25*time.Hour), trust.ErrNotYetValid},
	} {
		if err := dial(open(t, x.i, withEcho), "n2"); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
	server := newIdentity(t, a, "n2", 0).Server() // speaks no protocol of ours
	port, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	go func() {
		if c, err := port.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	if c, err := n1.Dial(t.Context(), port.Addr().String(), "n2", Node); err == nil {
		t.Error("a peer without the protocol was accepted")
		_ = c.Close()
	}
	if err := dial(n2, "n2"); err != nil {
		t.Errorf("the right one: %v", err)
	}
}

// Masses of peers that connect and send nothing keep no node out.
func TestSilentPeers(t *testing.T) {
	a := newAuthority(t, cluster)
	n1 := open(t, newIdentity(t, a, "n1", 0), func(o *Options) {
		o.Node = echo
		o.limits = connlimit.Limits{Total: 64, Unproven: 8, PerAddress: 32, PerNetwork: 32}
		o.limits.Doors[connlimit.HTTP] = 64
	})
	n2 := open(t, newIdentity(t, a, "n2", 0), withEcho)
	established := mustDial(t, n2, n1)
	var silent []net.Conn
	for range 40 {
		c, err := net.Dial("tcp", n1.Advertised())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
		if s := n1.limits.Stats(); s.Unproven > 8 {
			t.Fatalf("%d connections are in handshake, want at most 8", s.Unproven)
		}
	}
	for _, c := range silent[:32] {
		wantEnd(t, "one of the oldest", c)
	}
	mustDial(t, n2, n1)
	if _, err := established.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(established, make([]byte, 1)); err != nil {
		t.Errorf("an established connection: %v", err)
	}
}

// One address has only a share of the connections, even if all of them belong to nodes.
func TestConnectionsOfOneAddress(t *testing.T) {
	a := newAuthority(t, cluster)
	n1 := open(t, newIdentity(t, a, "n1", 0), func(o *Options) {
		o.Node = echo
		o.limits = connlimit.Limits{Total: 64, Unproven: 8, PerAddress: 4, PerNetwork: 4}
		o.limits.Doors[connlimit.HTTP] = 64
	})
	n2 := open(t, newIdentity(t, a, "n2", 0), nil)
	var held []net.Conn
	for range 4 {
		held = append(held, mustDial(t, n2, n1))
	}
	if c, err := n2.Dial(t.Context(), n1.Advertised(), "n1", Node); err == nil {
		wantEnd(t, "one too many", c)
		_ = c.Close()
	}
	if n := n1.refusals(byLimit); n != 1 {
		t.Errorf("%d refusals by limit, want 1", n)
	}
	_ = held[0].Close()
	waittest.Until(t, "its place is free", func() bool { return n1.limits.Stats().Open == 3 })
	mustDial(t, n2, n1)
}

func TestHandshakesEnd(t *testing.T) {
	l := open(t, newIdentity(t, newAuthority(t, cluster), "n1", 0), func(o *Options) {
		o.Node, o.handshakeWait = echo, 50*time.Millisecond
	})
	for _, sent := range [][]byte{nil, {22}, {22, 3, 1, 0, 200, 1, 0, 0, 196}} {
		c, err := net.Dial("tcp", l.Advertised())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(sent); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after %d bytes, the connection stays open", len(sent))
		}
		_ = c.Close()
	}
}

// A peer that is not authenticated cannot send indefinitely, whatever crypto/tls does with the data.
func TestHandshakesAreBounded(t *testing.T) {
	here, there := tcpPair(t)
	m := newMeter(here)
	m.left = 1000
	go func() { _, _ = there.Write(make([]byte, 5000)) }()
	n, err := io.Copy(io.Discard, m)
	if n != 1000 || !errors.Is(err, errTooMuch) {
		t.Errorf("read %d bytes, %v; want 1000, and then that it is too much", n, err)
	}
}

func tcpPair(t *testing.T) (here, there *net.TCPConn) {
	t.Helper()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	c, err := net.Dial("tcp", port.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := port.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = accepted.Close()
	})
	return c.(*net.TCPConn), accepted.(*net.TCPConn)
}

func TestPanicsEndTheirConnection(t *testing.T) {
	a := newAuthority(t, cluster)
	guard := panics.New(slog.New(slog.DiscardHandler))
	n1 := open(t, newIdentity(t, a, "n1", 0), func(o *Options) {
		o.Panics = guard
		o.Node = func(ctx context.Context, c net.Conn, peer trust.NodeID) {
			if peer == "n2" {
				panic("a defect")
			}
			echo(ctx, c, peer)
		}
	})
	c, err := open(t, newIdentity(t, a, "n2", 0), nil).Dial(t.Context(), n1.Advertised(), "n1", Node)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	wantEnd(t, "after the panic", c)
	mustDial(t, open(t, newIdentity(t, a, "n3", 0), nil), n1)
}

func TestRenewedCertificatesAreUsed(t *testing.T) {
	a, c := newAuthority(t, cluster), &clock{now: start}
	identity := func(id trust.NodeID) *trust.Identity {
		i, err := trust.NewIdentity(id, a, c.time)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	n1, n2 := open(t, identity("n1"), withEcho), open(t, identity("n2"), withEcho)
	serials := func(x net.Conn) string {
		return x.(*conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	first := mustDial(t, n2, n1)
	c.add(100 * 24 * time.Hour) // the certificates of the start are long over
	second := mustDial(t, n2, n1)
	if serials(first) == serials(second) {
		t.Error("the certificate was not renewed")
	}
	if _, err := first.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(first, make([]byte, 1)); err != nil {
		t.Errorf("the established connection: %v", err)
	}
}

// TestReplacementOfTheAuthority takes the three steps, one node after the other, while both dial each other.
func TestReplacementOfTheAuthority(t *testing.T) {
	old := newAuthority(t, cluster)
	i1, i2 := newIdentity(t, old, "n1", 0), newIdentity(t, old, "n2", 0)
	n1, n2 := open(t, i1, withEcho), open(t, i2, withEcho)
	held := mustDial(t, n1, n2)
	both, err := old.WithNext(start)
	if err != nil {
		t.Fatal(err)
	}
	switched, err := both.Switched()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*trust.Authority{both, switched, switched.Alone()} {
		for _, i := range []*trust.Identity{i1, i2} {
			if err := i.Use(a); err != nil {
				t.Fatal(err)
			}
			mustDial(t, n1, n2)
			mustDial(t, n2, n1)
		}
	}
	if _, err := held.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	late := open(t, newIdentity(t, old, "n3", 0), nil)
	if _, err := late.Dial(t.Context(), n1.Advertised(), "n1", Node); !errors.Is(err, trust.ErrUntrusted) {
		t.Errorf("a node that missed it: %v", err)
	}
}

// slowEnd holds back the last TLS record of a client's handshake, which follows its certificate, until more is closed.
type slowEnd struct {
	net.Conn
	held chan<- struct{} // closed when the rest has been sent
	more <-chan struct{}
}

func (c *slowEnd) Write(p []byte) (int, error) {
	last := 0 // where the last record begins
	for at := 0; at+5 <= len(p); at += 5 + int(binary.BigEndian.Uint16(p[at+3:])) {
		last = at
	}
	if last == 0 || c.held == nil { // the hello is one record
		return c.Conn.Write(p)
	}
	n, err := c.Conn.Write(p[:last])
	if err != nil {
		return n, err
	}
	close(c.held)
	c.held = nil
	<-c.more
	rest, err := c.Conn.Write(p[last:])
	return n + rest, err
}

// A peer whose certificate becomes void during its handshake is refused, even if the connections that existed were closed before the handshake ended.
func TestAuthorityIsReplacedDuringAHandshake(t *testing.T) {
	old := newAuthority(t, cluster)
	both, err := old.WithNext(start)
	if err != nil {
		t.Fatal(err)
	}
	next, err := both.Switched()
	if err != nil {
		t.Fatal(err)
	}
	i1 := newIdentity(t, both, "n1", 0)
	n1 := open(t, i1, withEcho)
	tcp, err := net.Dial("tcp", n1.Advertised())
	if err != nil {
		t.Fatal(err)
	}
	held, more := make(chan struct{}), make(chan struct{})
	c := tls.Client(&slowEnd{tcp, held, more}, stranger(newIdentity(t, old, "n2", 0), string(Node)))
	defer c.Close()
	shaken := make(chan error, 1)
	go func() { shaken <- c.HandshakeContext(t.Context()) }()
	<-held
	time.Sleep(50 * time.Millisecond) // the certificate is verified; otherwise the test shows nothing
	if err := i1.Use(next.Alone()); err != nil {
		t.Fatal(err)
	}
	n1.CloseUntrusted()
	close(more)
	if err := <-shaken; err != nil {
		t.Fatal(err) // the client does not know yet whether it is accepted
	}
	if peer, err := greeted(c); err == nil {
		t.Errorf("greeted as %q", peer)
	}
	waittest.Until(t, "the refusal is counted", func() bool { return n1.refusals(byCertificate) == 1 })
}

func TestRemovedNodes(t *testing.T) {
	a := newAuthority(t, cluster)
	var mu sync.Mutex
	gone := map[trust.NodeID]bool{}
	ended := make(chan trust.NodeID, 2)
	n1 := open(t, newIdentity(t, a, "n1", 0), func(o *Options) {
		o.Node = func(ctx context.Context, c net.Conn, peer trust.NodeID) {
			_, _ = io.WriteString(c, string(peer)+"\n")
			<-ctx.Done() // a handler that does not read notices, too
			ended <- peer
		}
		o.Removed = func(id trust.NodeID) bool {
			mu.Lock()
			defer mu.Unlock()
			return gone[id]
		}
	})
	n2, n3 := open(t, newIdentity(t, a, "n2", 0), withEcho), open(t, newIdentity(t, a, "n3", 0), withEcho)
	in, out, stays := mustDial(t, n2, n1), mustDial(t, n1, n2), mustDial(t, n3, n1)
	mu.Lock()
	gone["n2"] = true
	mu.Unlock()
	n1.CloseNode("n2")
	wantEnd(t, "its connection", in)
	if _, err := out.Read(make([]byte, 1)); err == nil {
		t.Error("the connection to it can be read")
	}
	if peer := <-ended; peer != "n2" {
		t.Errorf("the handler of %s has ended", peer)
	}
	if c, err := n2.Dial(t.Context(), n1.Advertised(), "n1", Node); err == nil {
		wantEnd(t, "another connection", c)
		_ = c.Close()
	}
	waittest.Until(t, "it is counted", func() bool { return n1.refusals(byRemoval) == 1 })
	if _, err := n1.Dial(t.Context(), n2.Advertised(), "n2", Node); err == nil {
		t.Error("a removed node was dialed")
	}
	if _, err := stays.Write([]byte("x")); err != nil {
		t.Errorf("the connection of another node: %v", err)
	}
}

// A link that closes ends all connections, including those that are being dialed, and waits for its handlers.
func TestClose(t *testing.T) {
	a := newAuthority(t, cluster)
	mute, err := net.Listen("tcp", "127.0.0.1:0") // accepts and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	began, ended := make(chan struct{}), make(chan struct{})
	n1 := open(t, newIdentity(t, a, "n1", 0), func(o *Options) {
		o.handshakeWait = time.Hour
		o.Node = func(ctx context.Context, c net.Conn, _ trust.NodeID) {
			close(began)
			<-ctx.Done()
			_, _ = c.Read(make([]byte, 1)) // the connection has ended, too
			close(ended)
		}
	})
	n2 := open(t, newIdentity(t, a, "n2", 0), nil)
	accepted, err := n2.Dial(t.Context(), n1.Advertised(), "n1", Node)
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	<-began
	silent, err := net.Dial("tcp", n1.Advertised())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	waittest.Until(t, "the silent peer is accepted", func() bool { return n1.limits.Stats().Unproven == 1 })
	dialed := make(chan error, 1)
	go func() {
		_, err := n1.Dial(context.Background(), mute.Addr().String(), "n3", Node)
		dialed <- err
	}()
	c, err := mute.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := n1.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
	default:
		t.Error("the handler runs still")
	}
	if err := <-dialed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("what was being dialed: %v, want net.ErrClosed", err)
	}
	wantEnd(t, "the accepted connection", accepted)
	wantEnd(t, "the silent peer", silent)
	if _, err := n1.Dial(t.Context(), n2.Advertised(), "n2", Node); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dialed afterwards: %v, want net.ErrClosed", err)
	}
	if err := n1.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	a := newAuthority(t, cluster)
	short := open(t, newIdentity(t, a, "n1", 0), func(o *Options) { o.handshakeWait = 50 * time.Millisecond })
	if _, err := short.Dial(context.Background(), mute.Addr().String(), "n2", Node); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent peer: %v", err)
	}
	long := open(t, newIdentity(t, a, "n1", 0), func(o *Options) { o.handshakeWait = time.Hour })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := long.Dial(ctx, mute.Addr().String(), "n2", Node); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gives up: %v", err)
	}
}

func TestAddressInUse(t *testing.T) {
	a := newAuthority(t, cluster)
	n1 := open(t, newIdentity(t, a, "n1", 0), nil)
	if l, err := Open(Options{Listen: n1.Advertised(), Identity: newIdentity(t, a, "n2", 0)}); err == nil {
		t.Error("two links have one port")
		_ = l.Close()
	}
}

// The wildcard address cannot be dialed by other nodes.
func TestAdvertisedAddress(t *testing.T) {
	i := newIdentity(t, newAuthority(t, cluster), "n1", 0)
	if l, err := Open(Options{Listen: ":0", Identity: i}); err == nil {
		t.Errorf("%s is advertised", l.Advertised())
		_ = l.Close()
	}
	l := open(t, i, func(o *Options) { o.Listen, o.Advertise = ":0", "node-1.example.com:8090" })
	transport, err := l.Transport()
	if err != nil || transport.LocalAddr() != "node-1.example.com:8090" {
		t.Errorf("Raft advertises %v, %v", transport, err)
	}
	if err := transport.(raft.WithClose).Close(); err != nil {
		t.Error(err)
	}
}

func TestMetrics(t *testing.T) {
	a := newAuthority(t, cluster)
	n1 := open(t, newIdentity(t, a, "n1", 0), withEcho)
	n2 := open(t, newIdentity(t, a, "n2", 0), nil)
	mustDial(t, n2, n1)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(n1)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	if got["muster_cluster_connections muster-node/1"] != 1 || len(got) != 3+int(refusals) {
		t.Errorf("got %v", got)
	}
}
