package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/listen"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/rate"
)

// Protocol is what a connection is used for, as ALPN names it.
type Protocol string

// The protocols between nodes that have certificates.
const (
	Raft Protocol = "muster-raft/1"
	Node Protocol = "muster-node/1"
	HTTP Protocol = "muster-http/1"

	joining Protocol = "muster-join/1"
)

const (
	// handshakeWait bounds a handshake, and the time in which a node has to take an accepted connection of Raft.
	handshakeWait = 5 * time.Second

	// joinWait is the life of a connection of a node that joins, from its acceptance to the end of the answer.
	joinWait = 10 * time.Second

	// handshakeBytes is what a peer may send before its handshake is complete. A hello and a certificate need 3 KiB.
	handshakeBytes = 64 << 10
)

// ConnectionsMax is how many connections of other nodes a node accepts, unless Options has a number. A node has a handful of connections to each other one.
const ConnectionsMax = 1024

// limitsOf are the limits for so many accepted connections.
func limitsOf(total int) connlimit.Limits {
	l := connlimit.Limits{Total: total, Unproven: total / 4, PerAddress: total / 8, PerNetwork: total / 4}
	l.Doors[connlimit.HTTP] = l.Total
	return l
}

// Options say where a node listens, who it is, and what it does with connections.
type Options struct {
	Listen    string           // address of the port
	Port      *net.TCPListener // bound already, in place of Listen; Close closes it. Nil: Open binds Listen
	Advertise string           // by which other nodes reach it; empty: the address that Listen has bound, which must not be that of all interfaces
	Identity  *trust.Identity

	// Node serves a connection of another node. The connection is closed when it returns. ctx ends with the connection, and with
	// the link; Close waits for Node. Nil: such connections are refused.
	Node func(ctx context.Context, conn net.Conn, peer trust.NodeID)

	// HTTP is Node for connections of the protocol HTTP. Nil: such connections are refused, as by a node of a release that does not know the protocol.
	HTTP func(ctx context.Context, conn net.Conn, peer trust.NodeID)

	// Join answers the request of a node that joins. The peer is not authenticated: the request has to prove its right. ctx ends with the time
	// of the connection. An error closes the connection without an answer. Nil: such connections are refused.
	Join func(ctx context.Context, from netip.Addr, request []byte) (answer []byte, err error)

	// NodeAt returns the node that Raft expects at an address. If it is unknown (empty), any node of the cluster is accepted. May be nil.
	NodeAt func(address string) trust.NodeID

	// Moved returns the address at which a node is reached now, if that is not the one that Raft knows; empty: it is. May be nil.
	Moved func(trust.NodeID) string

	// Removed reports whether a node has left the cluster for good; it gets no connection. Nil: none has.
	Removed func(trust.NodeID) bool

	Connections int // that are accepted at a time, at least 64; 0: ConnectionsMax

	Panics *panics.Guard // nil: panics are not confined
	Log    *slog.Logger  // nil: nothing is logged

	limits                  connlimit.Limits // zero: limitsOf(Connections)
	handshakeWait, joinWait time.Duration    // 0: those above
}

// Link is the bound port and all connections to other nodes, in both directions. All methods may be called at the same time.
type Link struct {
	options Options
	log     *slog.Logger
	port    *net.TCPListener
	tls     *tls.Config
	limits  *connlimit.Limiter
	joins   joins
	refused [refusals]atomic.Uint64
	noted   rate.Lines // about refused peers

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup // accepted connections that this package serves

	mu     sync.Mutex
	conns  map[*conn]struct{}
	stream *stream                     // nil: Raft does not run
	from   map[trust.NodeID]netip.Addr // where nodes have connected from, the last time
}

// Open binds the port. Connections are accepted from here on, and served once Serve runs.
func Open(o Options) (*Link, error) {
	l := &Link{options: o, log: o.Log, conns: map[*conn]struct{}{}, from: map[trust.NodeID]netip.Addr{}, noted: rate.Lines{Most: 5, Period: 10 * time.Second}}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	l.options.handshakeWait, l.options.joinWait = cmp.Or(o.handshakeWait, handshakeWait), cmp.Or(o.joinWait, joinWait)
	if o.limits == (connlimit.Limits{}) {
		o.limits = limitsOf(cmp.Or(o.Connections, ConnectionsMax))
	}
	l.limits = connlimit.New(connlimit.Config{Limits: o.limits, Log: l.log.With("port", "cluster")})
	l.tls = l.serverConfig()
	l.ctx, l.cancel = context.WithCancel(context.Background())
	var err error
	if l.port = o.Port; l.port == nil {
		l.port, err = Bind(o.Listen)
	}
	if err == nil {
		l.options.Advertise, err = Advertise(l.port, o.Advertise)
	}
	if err != nil {
		l.cancel()
		if l.port != nil {
			err = errors.Join(err, l.port.Close())
		}
		return nil, err
	}
	return l, nil
}

// Bind binds a port for Options.Port.
func Bind(address string) (*net.TCPListener, error) {
	config := net.ListenConfig{KeepAliveConfig: keepAlive}
	port, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for other nodes on %q: %w", address, err)
	}
	return port.(*net.TCPListener), nil
}

// Advertise returns the address by which other nodes reach a port: advertise, or the bound one when that is empty.
func Advertise(port *net.TCPListener, advertise string) (string, error) {
	if port.Addr().(*net.TCPAddr).IP.IsUnspecified() && advertise == "" {
		return "", fmt.Errorf("listen for other nodes on %q: it is no address by which they reach this node; name one to advertise", port.Addr())
	}
	return cmp.Or(advertise, port.Addr().String()), nil
}

// Addr is the bound address.
func (l *Link) Addr() net.Addr { return l.port.Addr() }

// Advertised is the address by which other nodes reach this one.
func (l *Link) Advertised() string { return l.options.Advertise }

// Serve serves connections until Close. It returns nil after Close, or the reason why the port is lost; established connections stay.
func (l *Link) Serve() error {
	if err := listen.Accept(l.port, l.ctx.Done(), l.log.With("port", "cluster"), l.admit); err != nil {
		return fmt.Errorf("accept connections of other nodes on %s: %w", l.Addr(), err)
	}
	return nil
}

// Close closes the port and all connections, ends what is being dialed, and waits for the handlers.
func (l *Link) Close() error {
	l.cancel()
	err := l.port.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	l.drop(func(*conn) bool { return true })
	l.running.Wait()
	return err
}

// CloseNode closes all connections to a node. If it has left the cluster, Options.Removed must report it by now.
func (l *Link) CloseNode(id trust.NodeID) {
	l.mu.Lock()
	delete(l.from, id)
	l.mu.Unlock()
	l.drop(func(c *conn) bool { return c.node == id })
}

// CloseUntrusted closes all connections of nodes whose certificate the authority in force does not accept.
func (l *Link) CloseUntrusted() {
	l.drop(func(c *conn) bool { return c.node != "" && l.options.Identity.Trusts(c.ConnectionState()) != nil })
}

// drop closes the connections that which selects, without waiting for their peers.
func (l *Link) drop(which func(*conn) bool) {
	l.mu.Lock()
	var dropped []*conn
	for c := range l.conns {
		if which(c) {
			dropped = append(dropped, c)
		}
	}
	l.mu.Unlock()
	for _, c := range dropped {
		c.drop()
	}
}

// serverConfig chooses by the offered protocol whether a peer needs a certificate.
func (l *Link) serverConfig() *tls.Config {
	nodes := l.options.Identity.Server()
	nodes.NextProtos = []string{string(Raft)}
	if l.options.Node != nil {
		nodes.NextProtos = append(nodes.NextProtos, string(Node))
	}
	if l.options.HTTP != nil {
		nodes.NextProtos = append(nodes.NextProtos, string(HTTP))
	}
	verify := nodes.VerifyConnection
	nodes.VerifyConnection = func(s tls.ConnectionState) error {
		if s.NegotiatedProtocol == "" {
			return errNoProtocol // the client offers none
		}
		return verify(s)
	}
	strangers := l.options.Identity.ServerForJoin()
	strangers.NextProtos = []string{string(joining)}
	return &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if l.options.Join != nil && slices.Equal(hello.SupportedProtos, strangers.NextProtos) {
			return strangers, nil
		}
		return nodes, nil
	}}
}

var errNoProtocol = errors.New("the peer names no protocol")
