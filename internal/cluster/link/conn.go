package link

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"

	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/connlimit"
)

// conn is a connection to a peer, accepted or dialed.
type conn struct {
	*tls.Conn
	link    *Link
	below   *meter
	ctx     context.Context // ends with the connection
	cancel  context.CancelFunc
	counted *connlimit.Conn // nil: dialed

	// The fields below are guarded by link.mu.
	node     trust.NodeID // empty until the handshake is complete, and for a joining node
	protocol Protocol
	stream   *stream // the stream that owns it; nil: none
}

// add records a new connection, unless the link is closed. An accepted one counts as running.
func (l *Link) add(c *conn) bool {
	c.link = l
	c.ctx, c.cancel = context.WithCancel(l.ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return false
	}
	l.conns[c] = struct{}{}
	if c.counted != nil {
		l.running.Add(1)
	}
	return true
}

// established records the node at the other end. It fails if that node has left the cluster, or its certificate is void since it was verified.
func (c *conn) established(node trust.NodeID, p Protocol, s *stream) error {
	l := c.link
	l.mu.Lock()
	c.node, c.protocol, c.stream = node, p, s
	l.mu.Unlock()
	// From here on CloseNode finds the connection; if CloseNode ran before, Removed reports the node.
	if l.options.Removed != nil && l.options.Removed(node) {
		return &removedError{node}
	}
	// For CloseUntrusted likewise. The certificate was verified in the middle of the handshake, and the peer chose when that ended.
	if err := l.options.Identity.Trusts(c.ConnectionState()); err != nil {
		return err
	}
	if c.counted != nil {
		l.mu.Lock()
		l.from[node] = addressOf(c.below.tcp)
		l.mu.Unlock()
	}
	c.below.left = math.MaxInt
	return nil
}

type removedError struct{ node trust.NodeID }

func (e *removedError) Error() string {
	return "node " + string(e.node) + " was removed from the cluster"
}

// Close announces the end of the connection to the peer, which may take up to 5 seconds if the peer reads no data.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.forget()
	return err
}

// drop closes the connection without notice and without waiting.
func (c *conn) drop() {
	c.below.reset()
	c.forget()
}

func (c *conn) forget() {
	c.cancel()
	c.link.mu.Lock()
	delete(c.link.conns, c)
	c.link.mu.Unlock()
	if c.counted != nil {
		c.counted.Release() // after the descriptor is free
	}
}

// meter is the TCP connection. It limits how much an unauthenticated peer may send.
type meter struct {
	net.Conn // hides all other methods of the TCP connection
	tcp      *net.TCPConn
	left     int // remaining bytes; set by the reading goroutine, or before there is one
}

func newMeter(tcp *net.TCPConn) *meter { return &meter{tcp, tcp, handshakeBytes} }

var errTooMuch = errors.New("the peer sends too much")

func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, errTooMuch
	}
	n, err := m.tcp.Read(p[:min(len(p), m.left)])
	if m.left != math.MaxInt {
		m.left -= n
	}
	return n, err
}

// reset closes at once: it does not wait for the peer, and the system forgets the connection.
func (m *meter) reset() {
	_ = m.tcp.SetLinger(0) // fails if the connection is closed, as does Close
	_ = m.tcp.Close()
}
