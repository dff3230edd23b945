package link

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"github.com/musterhq/muster/internal/cluster/trust"
)

// Dial connects to a node; without an id, to any node of the cluster at the address. It takes at most 5 seconds. The error of a link that is
// closed has net.ErrClosed, that of a peer's certificate an error of package trust.
func (l *Link) Dial(ctx context.Context, address string, node trust.NodeID, p Protocol) (net.Conn, error) {
	c, err := l.dial(ctx, address, node, p, nil)
	if err != nil {
		return nil, err // not a nil *conn within an interface
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
	secured, below, err := handshake(ctx, address, config)
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

// handshake connects to an address with the one protocol of a configuration.
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
