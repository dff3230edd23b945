package link

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/musterhq/muster/internal/cluster/trust"
)

// Dial connects to a node; without an id, to any node of the cluster at the address. It takes at most 5 seconds. If the link is closed, the error is
// net.ErrClosed; if the peer's certificate is refused, it is an error of package trust.
func (l *Link) Dial(ctx context.Context, address string, node trust.NodeID, p Protocol) (net.Conn, error) {
	c, err := l.dial(ctx, address, node, p, nil)
	if err != nil {
		return nil, err // do not return a nil *conn in an interface
	}
	return c, nil
}

func (l *Link) dial(ctx context.Context, address string, node trust.NodeID, p Protocol, s *stream) (_ *conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.options.handshakeWait)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	defer func() {
		if err == nil {
			return
		}
		if l.ctx.Err() != nil {
			err = net.ErrClosed
		}
		if node == "" {
			err = fmt.Errorf("dial %s: %w", address, err)
		} else {
			err = fmt.Errorf("dial node %s at %s: %w", node, address, err)
		}
	}()
	config := l.options.Identity.Client(node)
	config.NextProtos = []string{string(p)}
	secured, below, err := l.reach(ctx, address, node, config)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: secured, below: below}
	if !l.add(c) {
		c.drop()
		return nil, net.ErrClosed
	}
	if err := c.established(trust.Peer(secured.ConnectionState()), p, s); err != nil {
		c.drop()
		return nil, err
	}
	return c, nil
}

// nameWait bounds the attempt to reach a node by name if there is an alternative.
const nameWait = time.Second

// reach connects to a node by its address. If the address contains a name that does not lead to the node, reach connects to the address from which
// the node last connected, to this node or to the leader. A resolver may keep the old address of a node that has moved, such as a Kubernetes pod, for
// half a minute. The certificate proves the node's identity either way.
func (l *Link) reach(ctx context.Context, address string, node trust.NodeID, config *tls.Config) (*tls.Conn, *meter, error) {
	other := l.otherWay(address, node)
	if other == "" {
		return handshake(ctx, address, config)
	}
	first, cancel := context.WithTimeout(ctx, nameWait)
	c, below, err := handshake(first, address, config)
	cancel()
	if err == nil || ctx.Err() != nil {
		return c, below, err
	}
	c, below, again := handshake(ctx, other, config)
	if again != nil {
		return nil, nil, fmt.Errorf("%w; and where the node has connected from: %w", err, again)
	}
	return c, below, nil
}

// otherWay returns the address from which a node last connected, with the port of its own address; empty if the address contains no name, or the node
// has not connected.
func (l *Link) otherWay(address string, node trust.NodeID) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	from, known := l.from[node]
	if !known || !from.IsValid() {
		return ""
	}
	return net.JoinHostPort(from.String(), port)
}

// handshake connects to an address with the configuration's only protocol.
func handshake(ctx context.Context, address string, config *tls.Config) (*tls.Conn, *meter, error) {
	dialer := net.Dialer{KeepAliveConfig: keepAlive}
	tcp, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, nil, err
	}
	below := newMeter(tcp.(*net.TCPConn))
	noticeSilence(below.tcp)
	c := tls.Client(below, config)
	if err = c.HandshakeContext(ctx); err == nil && c.ConnectionState().NegotiatedProtocol != config.NextProtos[0] {
		err = fmt.Errorf("the peer does not speak %s", config.NextProtos[0])
	}
	if err != nil {
		below.reset()
		return nil, nil, err
	}
	return c, below, nil
}
